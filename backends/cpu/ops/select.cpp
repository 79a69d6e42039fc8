// Where: picks by condition, with broadcasting; any dtype, by element size.
#include <bit>
#include <cstring>

#include "backends/cpu/simd/select.h"
#include "backends/cpu/support/elementwise_layouts.h"
#include "runtime/geometry/broadcast.h"

namespace librt::cpu {
namespace {

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers producers) {
  const auto plan = broadcast_plan<3>(node.output(0).shape, {node.shape(0), node.shape(1), node.shape(2)});
  const size_t size = size_of(node.output(0).dtype);
  const auto select = device.simd().loops<SelectLoops>().select[std::countr_zero(size)];
  const auto body = [=, n = node.output(0).elements(),
                     bytes = static_cast<int64_t>(size)](const Call& call) noexcept {
    const uint8_t* condition = call.in<uint8_t>(0);
    const std::byte *x = call.in<std::byte>(1), *y = call.in<std::byte>(2);
    std::byte* out = call.out<std::byte>();
    const bool moves = plan.inner_stride(0) != 0, x_moves = plan.inner_stride(1) != 0,
               y_moves = plan.inner_stride(2) != 0;
    parallel_for(n, 1, 64, [&](int64_t begin, int64_t end) noexcept {
      for_each_run(plan, begin, end, [&](int64_t first, const std::array<int64_t, 3>& offset, int64_t count) {
        const std::byte *a = x + offset[1] * bytes, *b = y + offset[2] * bytes;
        if (moves) return select(condition + offset[0], a, b, out + first * bytes, count, x_moves, y_moves);
        // One condition for the whole run.
        const bool yes = condition[offset[0]] != 0;
        const std::byte* from = yes ? a : b;
        if (yes ? x_moves : y_moves)
          std::memcpy(out + first * bytes, from, static_cast<size_t>(count * bytes));
        else
          for (int64_t i = first; i < first + count; ++i)
            std::memcpy(out + i * bytes, from, static_cast<size_t>(bytes));
      });
    });
  };
  Requirements requirements;
  if (node.input(1) == node.output(0)) requirements = in_place(1);
  return make_kernel(body, requirements, elementwise_layouts(node, producers));
}

}  // namespace

std::span<const KernelRow> rows_select();
std::span<const KernelRow> rows_select() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::Where, "where", DTypeSet{DType::Bool})};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
