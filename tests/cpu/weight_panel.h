// Rows times panels of weights of 8 and 4 bits against sums in f64.
#pragma once

#include "backends/cpu/simd/weight_quantized_panel.h"

namespace librt::test {

/// Rows and columns beside whole tiles, groups of one and of several blocks, and rows that are not finite.
/// Fails a test of GoogleTest.
void check_weight_panels(const cpu::WeightPanelLoops& loops);

}  // namespace librt::test
