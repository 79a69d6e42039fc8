// A tile of the GEMM of 8-bit integers against sums of products, one by one.
#pragma once

#include "backends/cpu/simd/integer_gemm.h"

namespace librt::test {

/// All sizes up to the tile's; extremes of both signs. Fails a test of GoogleTest.
void check_integer_tile(const cpu::IntegerTile& tile);

}  // namespace librt::test
