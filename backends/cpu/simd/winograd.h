// Winograd's convolution F(4x4, 3x3) (Lavin & Gray 2016) for few tiles: see simd/winograd.cpp.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// A 3x3 convolution with stride 1 that takes x [batch, height, width, channels] to
/// [batch, out_height, out_width, out_channels], in tiles of 4x4 results.
struct WinogradShape {
  static constexpr int64_t kTile = 4, kPatch = 6, kPoints = 36;
  static constexpr int64_t kTileBlock = 32, kOutBlock = 32, kInBlock = 64;  ///< block sizes of one GEMM

  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t pad_top = 0, pad_left = 0;

  int64_t tile_rows() const noexcept { return (out_height + kTile - 1) / kTile; }
  int64_t tile_columns() const noexcept { return (out_width + kTile - 1) / kTile; }
  int64_t tiles() const noexcept { return batch * tile_rows() * tile_columns(); }
  int64_t tile_blocks() const noexcept { return (tiles() + kTileBlock - 1) / kTileBlock; }
  /// Floats from one point of the patches to the next, padded: powers of two would map to the same cache
  /// sets.
  static constexpr int64_t padded(int64_t floats) noexcept { return floats + 16; }
  /// Floats of all transformed tiles of a tensor with this many channels.
  int64_t transformed(int64_t of_channels) const noexcept {
    return tile_blocks() * kPoints * padded(kTileBlock * of_channels);
  }
  /// The workspace of one thread, in floats.
  int64_t workspace() const noexcept {
    return kPoints * (padded(kOutBlock * kInBlock) + (tile_blocks() + 1) * padded(kTileBlock * kOutBlock));
  }
};

/// Each covers a part of the work, so that several threads can share it. Channels are multiples of 64.
struct WinogradLoops {
  /// The patches of 6x6 of a tile block (0 <= block < tile_blocks()) and 16 channels, B' x B, to
  /// v [block][36][channels / 64][tile][64], or across: [block][36][channel][tile].
  void (*transform_patches)(const WinogradShape& shape, const float* x, float* v, int64_t block,
                            int64_t first_channel, bool across, float* workspace);
  /// The tiles of the results' gradient, A dy A', to dv [block][36][out_channels / 64][tile][64].
  void (*transform_results)(const WinogradShape& shape, const float* dy, float* dv, int64_t block,
                            int64_t first_channel);
  /// 32 channels of y from patches across; weight [out_channels, 3, 3, channels].
  void (*convolve)(const WinogradShape& shape, const float* v, const float* weight, float* y,
                   int64_t first_out, float* workspace);
  /// The data gradient as a convolution: `shape` takes dy to dx; weight [channels, 3, 3, out_channels] is
  /// that of the convolution itself; patches are not across.
  void (*convolve_back)(const WinogradShape& shape, const float* v, const float* weight, float* dx,
                        int64_t first_out, float* workspace);
  /// dw [first_out..+32, 3, 3, channels] from patches (not across) and transformed results.
  void (*weight_gradient)(const WinogradShape& shape, const float* v, const float* dv, float* dw,
                          int64_t first_out, float* workspace);
};
RT_DECLARE_LOOPS(WinogradLoops);

}  // namespace librt::cpu
