// Winograd's convolution F(4x4, 3x3), or F(4, 3) along one axis, with weights transformed before (Lavin &
// Gray 2016), tile by tile; the products in between are GEMMs of gemm.h. winograd.h is for weights that
// change.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// Channels are kChannels or more.
struct WinogradTileLoops {
  static constexpr int64_t kTile = 4, kPoints = 36, kChannels = 16;

  /// B' x B of the 6x6 patch of an image [height, width, channels] that begins at (row, column), zeros
  /// outside: point p goes to v + p v_step, [channels].
  void (*patch)(const float* image, int64_t height, int64_t width, int64_t channels, int64_t row,
                int64_t column, float* v, int64_t v_step);
  /// A' m A of a tile whose point p is at m + p m_step, [channels]: its first rows x columns results to y,
  /// [rows][row_step], [columns][channels].
  void (*results)(const float* m, int64_t m_step, int64_t channels, float* y, int64_t row_step, int64_t rows,
                  int64_t columns);

  // The same along one axis, F(4, 3), with six points. Positions of a patch and of results are `step` apart.
  static constexpr int64_t kLinePoints = 6;
  void (*line_patch)(const float* line, int64_t length, int64_t channels, int64_t position, int64_t step,
                     float* v, int64_t v_step);
  /// The first `count` results.
  void (*line_results)(const float* m, int64_t m_step, int64_t channels, float* y, int64_t step,
                       int64_t count);
};
RT_DECLARE_LOOPS(WinogradTileLoops);

}  // namespace librt::cpu
