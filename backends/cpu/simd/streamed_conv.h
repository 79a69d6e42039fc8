// Convolutions at few positions, whose weights are most of the memory traffic: see simd/streamed_conv.cpp.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// Results of 32 channels at all positions, from one stretch of packed weights.
struct StreamedConv {
  static constexpr int64_t kOut = 32;       ///< channels of the result at a time
  static constexpr int64_t kRun = 128;      ///< most channels of the input between two loads of accumulators
  static constexpr int64_t kMostRows = 10;  ///< positions with accumulators in registers at a time

  int64_t positions = 0, taps = 0, channels = 0;
  /// Floats from 16 channels of x to the next 16, and of the result: 16 in the dense layout.
  int64_t x_step = 16, y_step = 16;
  /// Offsets in floats from x to channel 0 of what a tap meets at a position, [taps][positions]; below 0:
  /// padding.
  const int64_t* offsets = nullptr;
  const int64_t* results = nullptr;  ///< offsets from y to channel 0 of each position
  const float* x = nullptr;
  const float* zeros = nullptr;  ///< what padding is: 16 at every multiple of x_step
  /// Every value is read once, in this order: [channels / kRun][taps][kRun][kOut], the last run shorter.
  const float* weight = nullptr;
  float* sums = nullptr;  ///< [positions][kOut]

  /// Positions at a time: nearly equal blocks.
  constexpr int64_t blocks() const noexcept { return (positions + kMostRows - 1) / kMostRows; }
  constexpr int64_t rows() const noexcept { return (positions + blocks() - 1) / blocks(); }
};

struct StreamedConvLoops {
  /// sums = the convolution. Null without AVX-512. Channels are a multiple of 16.
  void (*convolve)(const StreamedConv& conv);
  /// sums += bias [kOut] and residual, which lies like y; both may be null.
  void (*add)(const StreamedConv& conv, const float* bias, const float* residual);
  /// y = sums.
  void (*put)(const StreamedConv& conv, float* y);
};
RT_DECLARE_LOOPS(StreamedConvLoops);

}  // namespace librt::cpu
