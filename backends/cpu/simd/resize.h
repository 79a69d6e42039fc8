// Interpolation: along one line of points, and between points of a grid.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// GridSample's linear interpolation along up to 6 axes; along axis d a coordinate c is at scale[d] c +
/// shift[d].
struct LinearGrid {
  int axes = 0;
  bool to_border = false;  ///< coordinates outside move there; else what is outside counts as zero
  double scale[6] = {}, shift[6] = {};
  int32_t extent[6] = {};
};
inline constexpr int64_t kMostGridPoints = 64;

struct ResizeLoops {
  /// y[i] = sum over t < taps of weight[t n + i] x[index[t n + i]]; terms of weight 0 are skipped, also for
  /// NaN.
  void (*resize_row)(const float* x, const int32_t* index, const float* weight, int64_t taps, float* y,
                     int64_t n);
  /// y[i channels + c] = sum over t < taps of weight[t points + i] x[index[t points + i] channels + c], i <
  /// points; terms of weight 0 are skipped.
  void (*resize_points)(const float* x, const int32_t* index, const float* weight, int64_t taps,
                        int64_t points, int64_t channels, float* y);
  /// The operands of those for n <= kMostGridPoints points, whose coordinates are in rows of `axes`, the last
  /// axis first: 2^axes taps, of which those along the last axis are next to each other. Outside the weight
  /// is 0.
  void (*linear_taps)(const float* coordinates, const LinearGrid& grid, int64_t n, int32_t* index,
                      float* weight);
};
RT_DECLARE_LOOPS(ResizeLoops);

}  // namespace librt::cpu
