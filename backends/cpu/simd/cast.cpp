// f16 and bf16 to f32 and back, rounding to nearest even: instructions where the instruction set has them
// (F16C, NEON of AArch64), elsewhere the bit arithmetic of runtime/core/half.h, duplicated here because
// nothing inline may be shared between instruction sets. And numbers of 8 to 64 bits: vectors convert to and
// from 32-bit integers only (64-bit ones from AVX-512 on), so that wide types pass through those where a
// block's numbers fit.
#include "backends/cpu/simd/cast.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace librt::cpu::RT_SIMD_ISA {
namespace {

RT_INLINE float half_bits_to_float(uint32_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = 0x7f800000u | ((magnitude & 0x3ffu) << 13);
  const uint32_t subnormal = float_to_bits(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  return bits_to_float(sign | (magnitude >= 0x7c00u ? special : magnitude >= 0x0400u ? normal : subnormal));
}

RT_INLINE uint16_t float_to_half_bits(float value) {
  const uint32_t bits = float_to_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t rounded = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  const uint32_t tiny = float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t half = magnitude < 0x38800000u ? tiny : rounded;
  half = magnitude >= 0x47800000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return static_cast<uint16_t>(sign | half);
}

void f16_to_f32(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i))));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#elif defined(__aarch64__)
  for (; i + 8 <= n; i += 8) {
    const float16x8_t half = vreinterpretq_f16_u16(vld1q_u16(x + i));
    vst1q_f32(y + i, vcvt_f32_f16(vget_low_f16(half)));
    vst1q_f32(y + i + 4, vcvt_high_f32_f16(half));
  }
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k) y[k] = half_bits_to_float(x[k]);
}

void f32_to_f16(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
  for (; i + 8 <= n; i += 8) {
    const float16x8_t half = vcvt_high_f16_f32(vcvt_f16_f32(vld1q_f32(x + i)), vld1q_f32(x + i + 4));
    vst1q_u16(y + i, vreinterpretq_u16_f16(half));
  }
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k) y[k] = float_to_half_bits(x[k]);
}

void bf16_to_f32(const uint16_t* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = bits_to_float(static_cast<uint32_t>(x[i]) << 16);
}

void f32_to_bf16(const float* x, uint16_t* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = float_to_bits(x[i]);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    y[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
  }
}

template <class T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<float> = true;
template <>
constexpr bool kIsFloat<double> = true;

/// The bits of over() that are 0 where the number, truncated, is a 32-bit integer.
template <class T>
constexpr uint64_t kOver = uint64_t{1} << 63;
template <>
constexpr uint64_t kOver<float> = uint64_t{1} << 31;
template <>
constexpr uint64_t kOver<int64_t> = uint64_t{0xffffffff} << 32;

// Below 2^31 in magnitude, which no NaN is: as integers, whose order is that of the magnitudes.
RT_INLINE uint32_t over(float x) {
  return 0x4effffffu - (float_to_bits(x) & 0x7fffffffu);
}
RT_INLINE uint64_t over(double x) {
  return 0x41dfffffffffffffu - (__builtin_bit_cast(uint64_t, x) & 0x7fffffffffffffffu);
}
RT_INLINE uint64_t over(int64_t x) {
  return static_cast<uint64_t>(x) + 0x80000000u;
}

/// Whether all numbers, truncated, are 32-bit integers.
template <class T>
bool fit(const T* x, int64_t n) {
  auto any = over(T{});
  any = 0;
#pragma omp simd reduction(| : any)
  for (int64_t i = 0; i < n; ++i) any |= over(x[i]);
  return (any & kOver<T>) == 0;
}

/// The same for any number: toward zero, saturated, NaN to 0.
template <class To, class From>
RT_INLINE To converted(From x) {
  if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    constexpr To kLeast = static_cast<To>(uint64_t{1} << (8 * sizeof(To) - 1)),
                 kMost = static_cast<To>(~kLeast);
    if (!(x == x)) return 0;
    if (x <= static_cast<From>(kLeast)) return kLeast;
    return x >= static_cast<From>(kMost) ? kMost : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// Between 64-bit integers, or floats and integers of 32 and 64 bits.
template <class From, class To>
void convert_wide(const void* from, void* to, int64_t n) {
  constexpr int64_t kBlock = 512;  // stays in L1 between the two loops
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  for (int64_t begin = 0; begin < n; begin += kBlock, x += kBlock, y += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    if (fit(x, count)) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) y[i] = static_cast<To>(static_cast<int32_t>(x[i]));
    } else {
      for (int64_t i = 0; i < count; ++i) y[i] = converted<To>(x[i]);
    }
  }
}

/// A float to an integer of 8 or 16 bits.
template <class From, class To, int kLeast, int kMost>
void truncate(const void* from, void* to, int64_t n) {
  constexpr From kLow = kLeast, kHigh = kMost;
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const From number = x[i] == x[i] ? x[i] : From{0};
    const From raised = number < kLow ? kLow : number;
    y[i] = static_cast<To>(static_cast<int32_t>(raised > kHigh ? kHigh : raised));
  }
}

/// What one conversion does for any number.
template <class From, class To>
void convert(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
}

template <class From>
void to_bool(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<uint8_t*>(to);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] != From{0} ? 1 : 0;
}

template <class To>
void from_bool(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const uint8_t*>(from);
  auto* y = static_cast<To*>(to);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] != 0 ? To{1} : To{0};
}

constexpr CastLoops make_loops() {
  CastLoops table{};
  table.f16_to_f32 = &f16_to_f32;
  table.f32_to_f16 = &f32_to_f16;
  table.bf16_to_f32 = &bf16_to_f32;
  table.f32_to_bf16 = &f32_to_bf16;
  table.f32_to_i8 = &truncate<float, int8_t, -128, 127>;
  table.f32_to_u8 = &truncate<float, uint8_t, 0, 255>;
  table.f32_to_i16 = &truncate<float, int16_t, -32768, 32767>;
  table.f32_to_u16 = &truncate<float, uint16_t, 0, 65535>;
  table.f32_to_i32 = &convert_wide<float, int32_t>;
  table.f32_to_i64 = &convert_wide<float, int64_t>;
  table.f32_to_bool = &to_bool<float>;
  table.f32_to_f64 = &convert<float, double>;
  table.f64_to_i8 = &truncate<double, int8_t, -128, 127>;
  table.f64_to_u8 = &truncate<double, uint8_t, 0, 255>;
  table.f64_to_i32 = &convert_wide<double, int32_t>;
  table.f64_to_i64 = &convert_wide<double, int64_t>;
  table.f64_to_bool = &to_bool<double>;
  table.f64_to_f32 = &convert<double, float>;
  table.i64_to_i8 = &convert<int64_t, int8_t>;
  table.i64_to_u8 = &convert<int64_t, uint8_t>;
  table.i64_to_i32 = &convert<int64_t, int32_t>;
  table.i64_to_bool = &to_bool<int64_t>;
  table.i64_to_f32 = &convert_wide<int64_t, float>;
  table.i64_to_f64 = &convert_wide<int64_t, double>;
  table.i32_to_i64 = &convert<int32_t, int64_t>;
  table.i32_to_bool = &to_bool<int32_t>;
  table.i32_to_f32 = &convert<int32_t, float>;
  table.i32_to_f64 = &convert<int32_t, double>;
  table.u8_to_i64 = &convert<uint8_t, int64_t>;
  table.u8_to_f32 = &convert<uint8_t, float>;
  table.bool_to_i64 = &from_bool<int64_t>;
  table.bool_to_i32 = &from_bool<int32_t>;
  table.bool_to_f32 = &from_bool<float>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(CastLoops);
