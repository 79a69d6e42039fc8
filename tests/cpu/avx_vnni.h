// Loops for AVX-VNNI with its instruction replaced by a function that does what Intel's manual says (SDM
// volume 2C, VPDPBUSD): machines that run these tests often have no such instruction. A test includes this,
// then the loops' source, whose table is librt::cpu::kTestLoops.
#pragma once

#if defined(__AVX2__)
#define RT_SIMD_ISA avx_vnni_test
#include <immintrin.h>

#include "backends/cpu/simd/loops.h"

namespace librt::cpu {
namespace {

/// Not inlined: the loops are compiled for AVX-VNNI, so that the compiler might use the instruction.
[[gnu::noinline]] __m256i sum_products(__m256i sums, __m256i a, __m256i b) {
  alignas(32) int32_t sum[8];
  alignas(32) uint8_t x[32];
  alignas(32) int8_t y[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sum), sums);
  _mm256_store_si256(reinterpret_cast<__m256i*>(x), a);
  _mm256_store_si256(reinterpret_cast<__m256i*>(y), b);
  for (int i = 0; i < 32; ++i) sum[i / 4] += x[i] * y[i];
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(sum));
}

}  // namespace
}  // namespace librt::cpu

#undef RT_DEFINE_LOOPS
#define RT_DEFINE_LOOPS(Loops)                                           \
  namespace librt::cpu {                                                 \
  static constinit const Loops kTestLoops = avx_vnni_test::make_loops(); \
  }                                                                      \
  static_assert(true)
#define _mm256_dpbusd_avx_epi32 sum_products
#endif
