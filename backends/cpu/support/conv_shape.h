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

/// A convolution without the outer taps that multiply nothing but padding: 33 pixels padded by 36 with a
/// dilation of 36, as in DeepLab's pyramid, meet the middle one of three taps. The weight is the part of the
/// whole one that begins at the taps `first`.
struct ReachingTaps {
  ConvGeometry geometry;
  std::array<int64_t, kMaxSpatialRank> first{};
};
inline ReachingTaps reaching_taps(const ConvGeometry& g) noexcept {
  ReachingTaps taps{.geometry = g};
  for (int i = 0; i < g.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    WindowAxis& axis = taps.geometry.axes[at];
    int64_t begin = 0, end = axis.kernel;
    while (begin < end && axis.position(axis.output - 1, begin) < 0) ++begin;
    while (begin < end && axis.position(0, end - 1) >= axis.input) --end;
    const int64_t pad_begin = axis.pad_begin - begin * axis.dilation;
    if (begin == end || end - begin == axis.kernel || pad_begin < 0) continue;
    axis.pad_end -= (axis.kernel - end) * axis.dilation;
    axis.pad_begin = pad_begin;
    axis.kernel = end - begin;
    taps.first[at] = begin;
  }
  return taps;
}

}  // namespace librt::cpu
