// Philox4x32-10 random numbers.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct RandomLoops {
  static constexpr int kBlocks = 16;  ///< Philox blocks of one call

  /// The 4 kBlocks values of Philox blocks index.. : uniform in [0, 1), or normal [1].
  void (*random[2])(uint64_t seed, uint64_t counter, uint64_t index, float* y);
};
RT_DECLARE_LOOPS(RandomLoops);

}  // namespace librt::cpu
