// Winograd's convolution F(2x2, 3x3) (Lavin & Gray 2016) of 8-bit integers, exact: the weights' transform is
// 4 G g G', whose elements are integers of 12 bits, as the patches' are of 11; the results' transform divides
// by 4. The products in between are GEMMs of integer_gemm.h.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// Channels are multiples of kChannels.
struct IntegerWinogradLoops {
  static constexpr int64_t kTile = 2, kPatch = 4, kPoints = 16, kChannels = 16;

  /// B' x B of the 4x4 patch whose elements [channels] are at x[16]: point p goes to v + p v_step,
  /// [channels]. By whether x is unsigned.
  void (*patch[2])(const uint8_t* const* x, int64_t channels, int16_t* v, int64_t v_step);
  /// 4 G g G' of kChannels channels of a window, whose taps are tap_step apart: point p goes to u + p u_step.
  void (*weights)(const int8_t* window, int64_t tap_step, int16_t* u, int64_t u_step);
  /// A' m A / 4 of a tile whose point p is at m + p m_step, [channels], to y [2][2][channels]; sums wrap
  /// before the division.
  void (*results)(const int32_t* m, int64_t m_step, int64_t channels, int32_t* y);
};
RT_DECLARE_LOOPS(IntegerWinogradLoops);

}  // namespace librt::cpu
