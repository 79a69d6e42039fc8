// Axes on which a convolution computes nothing.
#pragma once

#include "runtime/geometry/windows.h"

namespace librt::cpu {

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
