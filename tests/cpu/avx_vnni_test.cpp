// The tile for AVX-VNNI with its instruction replaced by a function that does what Intel's manual says
// (SDM volume 2C, VPDPBUSD): machines that run these tests often have no such instruction.
#include <gtest/gtest.h>

#include "tests/cpu/integer_tile.h"

#if defined(__AVX2__)
#define RT_SIMD_ISA avx_vnni_test
#include <immintrin.h>

#include "backends/cpu/simd/loops.h"

namespace librt::cpu {
namespace {

/// Not inlined: the tile is compiled for AVX-VNNI, so that the compiler might use the instruction.
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
#include "backends/cpu/simd/integer_gemm.cpp"  // NOLINT(bugprone-suspicious-include)
#undef _mm256_dpbusd_avx_epi32

TEST(AvxVnni, TilesWriteTheirPartOnly) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  ASSERT_NE(librt::cpu::kTestLoops.dot.run, nullptr);
  librt::test::check_integer_tile(librt::cpu::kTestLoops.dot);
}
#else
TEST(AvxVnni, TilesWriteTheirPartOnly) {
  GTEST_SKIP() << "only on x86-64";
}
#endif
