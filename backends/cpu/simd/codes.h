// Vectors of quantized values: widened on load, saturated on store.
#pragma once

#include "backends/cpu/simd/vector.h"

#if defined(__AVX2__)
namespace librt::cpu::RT_SIMD_ISA {

#if defined(__AVX512F__)
using Reals = __m512;
using Integers = __m512i;
/// At most `high`, and at least `low`, which it is also where x is NaN.
RT_INLINE Reals clamped(Reals x, Reals low, Reals high) {
  return _mm512_min_ps(_mm512_max_ps(x, low), high);
}
RT_INLINE Reals multiplied_added(Reals a, Reals b, Reals c) {
  return _mm512_fmadd_ps(a, b, c);
}
/// c - a b
RT_INLINE Reals multiplied_subtracted(Reals a, Reals b, Reals c) {
  return _mm512_fnmadd_ps(a, b, c);
}
/// 0 where `of` is NaN.
RT_INLINE Reals zero_where_nan(Reals x, Reals of) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(of, of, _CMP_ORD_Q), x);
}
RT_INLINE Integers rounded(Reals x) {
  return _mm512_cvtps_epi32(x);
}
RT_INLINE __m512i load_code(const int8_t* x) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
RT_INLINE __m512i load_code(const uint8_t* x) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
RT_INLINE __m512i load_code(const int16_t* x) {
  return _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
RT_INLINE __m512i load_code(const uint16_t* x) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
RT_INLINE void store_code(int8_t* y, __m512i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm512_cvtsepi32_epi8(v));
}
RT_INLINE void store_code(uint8_t* y, __m512i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y),
                   _mm512_cvtusepi32_epi8(_mm512_max_epi32(v, _mm512_setzero_si512())));
}
RT_INLINE void store_code(int16_t* y, __m512i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_cvtsepi32_epi16(v));
}
RT_INLINE void store_code(uint16_t* y, __m512i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y),
                      _mm512_cvtusepi32_epi16(_mm512_max_epi32(v, _mm512_setzero_si512())));
}
#else
using Reals = __m256;
using Integers = __m256i;
RT_INLINE Reals clamped(Reals x, Reals low, Reals high) {
  return _mm256_min_ps(_mm256_max_ps(x, low), high);
}
RT_INLINE Reals multiplied_added(Reals a, Reals b, Reals c) {
  return _mm256_fmadd_ps(a, b, c);
}
RT_INLINE Reals multiplied_subtracted(Reals a, Reals b, Reals c) {
  return _mm256_fnmadd_ps(a, b, c);
}
RT_INLINE Reals zero_where_nan(Reals x, Reals of) {
  return _mm256_and_ps(x, _mm256_cmp_ps(of, of, _CMP_ORD_Q));
}
RT_INLINE Integers rounded(Reals x) {
  return _mm256_cvtps_epi32(x);
}
RT_INLINE __m256i load_code(const int8_t* x) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
}
RT_INLINE __m256i load_code(const uint8_t* x) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
}
RT_INLINE __m256i load_code(const int16_t* x) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
RT_INLINE __m256i load_code(const uint16_t* x) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
/// Saturated to 16 bits with a sign.
RT_INLINE __m128i saturated(__m256i v) {
  return _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
RT_INLINE void store_code(int8_t* y, __m256i v) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(y), _mm_packs_epi16(saturated(v), _mm_setzero_si128()));
}
RT_INLINE void store_code(uint8_t* y, __m256i v) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(y), _mm_packus_epi16(saturated(v), _mm_setzero_si128()));
}
RT_INLINE void store_code(int16_t* y, __m256i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), saturated(v));
}
RT_INLINE void store_code(uint16_t* y, __m256i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y),
                   _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
}
/// Four vectors next to each other.
RT_INLINE __m256i in_order(__m256i by_lanes) {
  return _mm256_permutevar8x32_epi32(by_lanes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
RT_INLINE void store_codes(int8_t* y, __m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), in_order(bytes));
}
RT_INLINE void store_codes(uint8_t* y, __m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), in_order(bytes));
}
#endif
inline constexpr int64_t kCodes = sizeof(Reals) / sizeof(float);  ///< in a vector

RT_INLINE Reals all_of(float x) {
  return x - Reals{};
}
RT_INLINE Integers all_of(int32_t x) {
  return (Integers)(x - Vector<int32_t>{});
}
RT_INLINE Integers sum_of(Integers a, Integers b) {
  return (Integers)((Vector<int32_t>)a + (Vector<int32_t>)b);
}
RT_INLINE Reals real_of(Integers x) {
  return __builtin_convertvector((Vector<int32_t>)x, Vector<float>);
}
RT_INLINE Reals load_real(const float* x) {
  return load<Reals>(x);
}
RT_INLINE Reals load_real(const int32_t* x) {
  return real_of(load<Integers>(x));
}
/// x / scale, from q = x inverse and inverse = 1 / scale (Markstein 1990).
RT_INLINE Reals corrected_quotient(Reals q, Reals x, Reals scale, Reals inverse) {
  return multiplied_added(multiplied_subtracted(q, scale, x), inverse, q);
}

}  // namespace librt::cpu::RT_SIMD_ISA
#endif
