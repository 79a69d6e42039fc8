// f16 and bf16 to f32 and back, rounding to nearest even, and f32 to short integers. Instructions where the
// instruction set has them (F16C, NEON of AArch64); elsewhere the bit arithmetic of runtime/core/half.h,
// duplicated here because nothing inline may be shared between instruction sets.
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

/// Toward zero, saturated, NaN to 0; through 32-bit integers, to which vectors convert directly.
template <class To, int kLeast, int kMost>
void truncate(const float* x, To* y, int64_t n) {
  constexpr float kLow = kLeast, kHigh = kMost;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float number = x[i] == x[i] ? x[i] : 0.0f;
    const float raised = number < kLow ? kLow : number;
    y[i] = static_cast<To>(static_cast<int32_t>(raised > kHigh ? kHigh : raised));
  }
}

constexpr CastLoops make_loops() {
  CastLoops table{};
  table.f16_to_f32 = &f16_to_f32;
  table.f32_to_f16 = &f32_to_f16;
  table.bf16_to_f32 = &bf16_to_f32;
  table.f32_to_bf16 = &f32_to_bf16;
  table.f32_to_i8 = &truncate<int8_t, -128, 127>;
  table.f32_to_u8 = &truncate<uint8_t, 0, 255>;
  table.f32_to_i16 = &truncate<int16_t, -32768, 32767>;
  table.f32_to_u16 = &truncate<uint16_t, 0, 65535>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(CastLoops);
