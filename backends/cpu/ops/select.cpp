// Where: picks by condition, with broadcasting; any dtype, by element size.
#include "backends/common/broadcast.h"
#include "backends/cpu/elements.h"
#include "backends/cpu/kernel.h"

namespace rt::cpu {
namespace {

Result<KernelPtr> create(CpuDevice&, const NodeView& node, Producers) {
  const auto plan = broadcast_plan<3>(node.output(0).shape, {node.shape(0), node.shape(1), node.shape(2)});
  const int64_t n = node.output(0).elements();
  const int64_t step_c = plan.inner_stride(0), step_x = plan.inner_stride(1), step_y = plan.inner_stride(2);
  return with_size(size_of(node.output(0).dtype), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const Call& call) noexcept {
      const uint8_t* condition = call.in<uint8_t>(0);
      const T* x = call.in<T>(1);
      const T* y = call.in<T>(2);
      T* out = call.out<T>();
      parallel_for(n, 1, 64, [&](int64_t begin, int64_t end) noexcept {
        for_each_run(plan, begin, end,
                     [&](int64_t first, const std::array<int64_t, 3>& offset, int64_t count) {
                       const uint8_t* c = condition + offset[0];
                       const T* a = x + offset[1];
                       const T* b = y + offset[2];
                       if (step_c == 1 && step_x == 1 && step_y == 1) {
                         for (int64_t i = 0; i < count; ++i) out[first + i] = c[i] != 0 ? a[i] : b[i];
                       } else {
                         for (int64_t i = 0; i < count; ++i)
                           out[first + i] = c[i * step_c] != 0 ? a[i * step_x] : b[i * step_y];
                       }
                     });
      });
    });
  });
}

}  // namespace

std::span<const KernelRow> rows_select();
std::span<const KernelRow> rows_select() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::Where, "where", DTypeSet{DType::Bool})};
  return kRows;
}

}  // namespace rt::cpu
