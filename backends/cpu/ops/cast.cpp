// Cast between all dtypes: through vector loops between those that models hold much of.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/cast.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/widen_blocks.h"

namespace librt::cpu {
namespace {

struct VectorCast {
  DType from, to;
  CastLoop CastLoops::*loop;
};
constexpr VectorCast kVectorCasts[] = {
    {DType::F32, DType::I8, &CastLoops::f32_to_i8},     {DType::F32, DType::U8, &CastLoops::f32_to_u8},
    {DType::F32, DType::I16, &CastLoops::f32_to_i16},   {DType::F32, DType::U16, &CastLoops::f32_to_u16},
    {DType::F32, DType::I32, &CastLoops::f32_to_i32},   {DType::F32, DType::I64, &CastLoops::f32_to_i64},
    {DType::F32, DType::Bool, &CastLoops::f32_to_bool}, {DType::F32, DType::F64, &CastLoops::f32_to_f64},
    {DType::F64, DType::I8, &CastLoops::f64_to_i8},     {DType::F64, DType::U8, &CastLoops::f64_to_u8},
    {DType::F64, DType::I32, &CastLoops::f64_to_i32},   {DType::F64, DType::I64, &CastLoops::f64_to_i64},
    {DType::F64, DType::Bool, &CastLoops::f64_to_bool}, {DType::F64, DType::F32, &CastLoops::f64_to_f32},
    {DType::I64, DType::I8, &CastLoops::i64_to_i8},     {DType::I64, DType::U8, &CastLoops::i64_to_u8},
    {DType::I64, DType::I32, &CastLoops::i64_to_i32},   {DType::I64, DType::Bool, &CastLoops::i64_to_bool},
    {DType::I64, DType::F32, &CastLoops::i64_to_f32},   {DType::I64, DType::F64, &CastLoops::i64_to_f64},
    {DType::I32, DType::I64, &CastLoops::i32_to_i64},   {DType::I32, DType::Bool, &CastLoops::i32_to_bool},
    {DType::I32, DType::F32, &CastLoops::i32_to_f32},   {DType::I32, DType::F64, &CastLoops::i32_to_f64},
    {DType::U8, DType::I64, &CastLoops::u8_to_i64},     {DType::U8, DType::F32, &CastLoops::u8_to_f32},
    {DType::Bool, DType::I64, &CastLoops::bool_to_i64}, {DType::Bool, DType::I32, &CastLoops::bool_to_i32},
    {DType::Bool, DType::F32, &CastLoops::bool_to_f32},
};

template <class From, class To>
void cast_loop(const void* x, void* y, int64_t n) {
  const auto* from = static_cast<const From*>(x);
  auto* to = static_cast<To*>(y);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const auto wide = widen(from[i]);
    if constexpr (sizeof(From) < 4)  // 32-bit integer vectors convert directly to every type
      to[i] = narrow<To>(static_cast<int32_t>(wide));
    else
      to[i] = narrow<To>(wide);
  }
}

/// Between types that are not 16-bit floats.
CastLoop loop_of(const Simd& simd, DType from, DType to) {
  const auto* vector = std::ranges::find_if(
      kVectorCasts, [&](const VectorCast& cast) { return cast.from == from && cast.to == to; });
  if (vector != std::end(kVectorCasts)) return simd.loops<CastLoops>().*vector->loop;
  return with_type(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return with_type(to, [](auto to_tag) -> CastLoop {
      using To = typename decltype(to_tag)::type;
      constexpr bool kHalf = std::is_same_v<From, Half> || std::is_same_v<From, BFloat> ||
                             std::is_same_v<To, Half> || std::is_same_v<To, BFloat>;
      if constexpr (kHalf)
        return nullptr;
      else
        return &cast_loop<From, To>;
    });
  });
}

KernelPtr make_cast(const Simd& simd, int64_t n, DType from, DType to) {
  const auto from_size = static_cast<int64_t>(size_of(from)), to_size = static_cast<int64_t>(size_of(to));
  return make_kernel([=, loop = loop_of(simd, from, to)](const Call& call) noexcept {
    const auto* x = call.in<std::byte>(0);
    auto* y = call.out<std::byte>();
    parallel_for(n, 1, 64, [&](int64_t begin, int64_t end) noexcept {
      loop(x + begin * from_size, y + begin * to_size, end - begin);
    });
  });
}

/// From or to 16-bit floats, or both: in f32, block by block.
KernelPtr make_half_cast(const Simd& simd, int64_t n, DType from, DType to) {
  const bool from_half = kHalves.contains(from), to_half = kHalves.contains(to);
  const CastLoop before = from_half ? nullptr : loop_of(simd, from, DType::F32);
  const CastLoop after = to_half ? nullptr : loop_of(simd, DType::F32, to);
  const auto from_size = static_cast<int64_t>(size_of(from)), to_size = static_cast<int64_t>(size_of(to));
  return make_kernel([=, &simd](const Call& call) noexcept {
    parallel_for(n, 4, 64, [&](int64_t begin, int64_t end) noexcept {
      float wide[kWideBlock];
      for (int64_t i = begin; i < end; i += kWideBlock) {
        const int64_t count = std::min(kWideBlock, end - i);
        const std::byte* x = call.in<std::byte>(0) + i * from_size;
        std::byte* y = call.out<std::byte>() + i * to_size;
        if (from_half)
          widen_block(simd, from, reinterpret_cast<const uint16_t*>(x), wide, count);
        else
          before(x, wide, count);
        if (to_half)
          narrow_block(simd, to, wide, reinterpret_cast<uint16_t*>(y), count);
        else
          after(wide, y, count);
      }
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
    return make_vector_cast(
        n, to == DType::F16 ? simd.loops<CastLoops>().f32_to_f16 : simd.loops<CastLoops>().f32_to_bf16);
  if (to == DType::F32 && kHalves.contains(from))
    return make_vector_cast(
        n, from == DType::F16 ? simd.loops<CastLoops>().f16_to_f32 : simd.loops<CastLoops>().bf16_to_f32);
  if (kHalves.contains(from) || kHalves.contains(to)) return make_half_cast(simd, n, from, to);
  return make_cast(simd, n, from, to);
}

}  // namespace

std::span<const KernelRow> rows_cast();
std::span<const KernelRow> rows_cast() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::Cast, "cast", kAnyDType)};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
