// What follows from a convolution's extents: numbers of points and taps, which form it has.
#pragma once

#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// The product of one extent of the first `axes` spatial axes: points of a side (input, output) or taps
/// (kernel).
inline int64_t points_of(const ConvGeometry& g, int64_t WindowAxis::*extent, int axes) noexcept {
  int64_t points = 1;
  for (int i = 0; i < axes; ++i) points *= g.axes[static_cast<size_t>(i)].*extent;
  return points;
}
inline int64_t points_of(const ConvGeometry& g, int64_t WindowAxis::*extent) noexcept {
  return points_of(g, extent, g.rank);
}

inline bool is_depthwise(const ConvGeometry& g) noexcept {
  return g.groups > 1 && g.input_channels_per_group() == 1 && g.output_channels_per_group() == 1;
}

/// The same convolution, of the same bytes in each layout, without spatial axes on which its only window is
/// the only position: [N,H,1,C] with windows of [K,1] is [N,H,C]. Kernels block the last spatial axis, and
/// found one position there: 665 MFLOP of [1,512,1,256] with windows of [5,1] took 4.35 ms instead of 3.
inline ConvGeometry without_unit_axes(ConvGeometry g) noexcept {
  int kept = 0;
  for (int i = 0; i < g.rank; ++i) {
    const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
    const bool is_unit = axis.input == 1 && axis.output == 1 && axis.kernel == 1 && axis.pad_begin == 0;
    if (is_unit && g.rank - i + kept > 1) continue;
    g.axes[static_cast<size_t>(kept++)] = axis;
  }
  g.rank = kept;
  // oneDNN has fast depthwise convolutions for two axes only: 0.77 ms for 256 channels of 512 with windows of
  // 3, on two axes 0.09.
  if (g.rank == 1 && g.groups > 1) {
    g.rank = 2;
    g.axes[1] = g.axes[0];
    g.axes[0] = {};
  }
  return g;
}

}  // namespace librt::cpu
