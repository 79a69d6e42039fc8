// Vectors of quantized values: widened on load, saturated on store.
#pragma once

#include "backends/cpu/simd/math.h"

#if defined(__AVX512F__)
#include <immintrin.h>

namespace librt::cpu::RT_SIMD_ISA {

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

}  // namespace librt::cpu::RT_SIMD_ISA
#endif
