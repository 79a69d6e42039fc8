// What Winograd's convolutions of 3x3 windows share: which windows they take, and where their tiles of
// results are.
#pragma once

#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Whether the windows are those of F(n x n, 3x3).
inline Status supports_winograd_windows(const ConvGeometry& g) {
  if (g.rank != 2 || g.groups != 1) return unsupported("Winograd needs two spatial axes and one group");
  for (size_t i = 0; i < 2; ++i) {
    const WindowAxis& axis = g.axes[i];
    if (axis.kernel != 3 || axis.stride != 1 || axis.dilation != 1)
      return unsupported("Winograd needs 3x3 windows with stride 1");
  }
  return {};
}

/// The result in tiles of `tile` x `tile` elements, row by row of each sample.
struct WinogradTiling {
  struct Place {
    int64_t sample, row, column;  ///< of a tile's first element
  };
  int64_t tile, rows, columns, count;

  WinogradTiling(const ConvGeometry& g, int64_t of_tile) noexcept
      : tile(of_tile),
        rows((g.axes[0].output + tile - 1) / tile),
        columns((g.axes[1].output + tile - 1) / tile),
        count(g.batch * rows * columns) {}
  Place place(int64_t i) const noexcept {
    return {i / (rows * columns), i / columns % rows * tile, i % columns * tile};
  }
};

}  // namespace librt::cpu
