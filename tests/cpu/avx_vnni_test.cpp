// The tile of the GEMM of integers for AVX-VNNI.
#include <gtest/gtest.h>

#include "tests/cpu/avx_vnni.h"
#include "tests/cpu/integer_tile.h"

#if defined(__AVX2__)
#include "backends/cpu/simd/integer_gemm.cpp"  // NOLINT(bugprone-suspicious-include)

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
