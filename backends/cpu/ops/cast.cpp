// Cast between all dtypes. f32 and the 16-bit floats through vector loops.
#include <cstring>

#include "backends/cpu/elements.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel.h"

namespace rt::cpu {
namespace {

/// n elements; one kernel serves all pairs of dtypes.
using CastLoop = void (*)(const std::byte* x, std::byte* y, int64_t n);

template <class From, class To>
void cast_loop(const std::byte* x, std::byte* y, int64_t n) {
  const auto* from = reinterpret_cast<const From*>(x);
  auto* to = reinterpret_cast<To*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = narrow<To>(widen(from[i]));
}

KernelPtr make_cast(int64_t n, int64_t from_size, int64_t to_size, CastLoop loop) {
  return make_kernel([=](const Call& call) noexcept {
    const auto* x = call.in<std::byte>(0);
    auto* y = call.out<std::byte>();
    parallel_for(n, 2, 64, [&](int64_t begin, int64_t end) noexcept {
      loop(x + begin * from_size, y + begin * to_size, end - begin);
    });
  });
}

/// loop(x, y, n) of the vector table.
template <class From, class To>
KernelPtr make_vector_cast(int64_t n, void (*loop)(const From*, To*, int64_t)) {
  return make_kernel([=](const Call& call) noexcept {
    const From* x = call.in<From>(0);
    To* y = call.out<To>();
    parallel_for(n, 1, 64,
                 [&](int64_t begin, int64_t end) noexcept { loop(x + begin, y + begin, end - begin); });
  });
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const DType from = node.dtype(0), to = node.output(0).dtype;
  const int64_t n = node.input(0).elements();
  const Simd& simd = device.simd();
  if (from == to) {
    return make_kernel(
        [bytes = node.input(0).bytes()](const Call& call) noexcept {
          if (call.in<char>(0) != call.out<char>()) std::memcpy(call.out<char>(), call.in<char>(0), bytes);
        },
        in_place());
  }
  if (from == DType::F32 && kHalves.contains(to))
    return make_vector_cast(n, to == DType::F16 ? simd.f32_to_f16 : simd.f32_to_bf16);
  if (to == DType::F32 && kHalves.contains(from))
    return make_vector_cast(n, from == DType::F16 ? simd.f16_to_f32 : simd.bf16_to_f32);
  const CastLoop loop = with_type(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return with_type(to, [](auto to_tag) -> CastLoop {
      using To = typename decltype(to_tag)::type;
      return &cast_loop<From, To>;
    });
  });
  return make_cast(n, static_cast<int64_t>(size_of(from)), static_cast<int64_t>(size_of(to)), loop);
}

}  // namespace

std::span<const KernelRow> rows_cast();
std::span<const KernelRow> rows_cast() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::Cast, "cast", kAnyDType)};
  return kRows;
}

}  // namespace rt::cpu
