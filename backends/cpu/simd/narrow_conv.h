// Convolutions with few channels in the result: see simd/narrow_conv.cpp.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// A stretch of a window, and the weights that it meets.
struct NarrowLine {
  const float* x;
  const float* weight;  ///< of the first result; those of the next one are weight_stride floats further
};

struct NarrowConvLoops {
  int64_t lanes = 0;         ///< floats in a vector
  int64_t most_outputs = 0;  ///< 8, or 4 with fewer registers
  /// y[p][o] = the sum over lines of the dot product of `length` floats from line.x + p step and from
  /// line.weight
  /// + o weight_stride, for `points` p and `outputs` o. The sum of an element does not depend on `points`.
  void (*convolve)(const NarrowLine* lines, int64_t count, int64_t length, int64_t step, int64_t points,
                   int64_t outputs, int64_t weight_stride, float* y);
};
RT_DECLARE_LOOPS(NarrowConvLoops);

}  // namespace librt::cpu
