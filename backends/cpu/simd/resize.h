// Interpolation along one line of points.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct ResizeLoops {
  /// y[i] = sum over t < taps of weight[t n + i] x[index[t n + i]]; terms of weight 0 are skipped, also for
  /// NaN.
  void (*resize_row)(const float* x, const int32_t* index, const float* weight, int64_t taps, float* y,
                     int64_t n);
  /// y[i channels + c] = sum over t < taps of weight[t points + i] x[index[t points + i] channels + c], i <
  /// points; terms of weight 0 are skipped.
  void (*resize_points)(const float* x, const int32_t* index, const float* weight, int64_t taps,
                        int64_t points, int64_t channels, float* y);
};
RT_DECLARE_LOOPS(ResizeLoops);

}  // namespace librt::cpu
