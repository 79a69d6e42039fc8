// Panels of weights of 8 and 4 bits for AVX-VNNI.
#include <gtest/gtest.h>

#include "tests/cpu/avx_vnni.h"
#include "tests/cpu/weight_panel.h"

#if defined(__AVX2__)
#include "backends/cpu/simd/weight_quantized_panel.cpp"  // NOLINT(bugprone-suspicious-include)

TEST(AvxVnni, PanelsOfWeights) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  librt::test::check_weight_panels(librt::cpu::kTestLoops);
}
#else
TEST(AvxVnni, PanelsOfWeights) {
  GTEST_SKIP() << "only on x86-64";
}
#endif
