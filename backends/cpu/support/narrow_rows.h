// What convolutions with few channels in the result share: its rows in stretches, each with its epilogue.
#pragma once

#include <algorithm>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/narrow_conv.h"
#include "backends/cpu/support/conv_shape.h"
#include "backends/cpu/support/epilogue.h"

namespace librt::cpu {

/// Lines of a window, whose addresses are on the stack.
inline constexpr int64_t kMostLines = 256;
/// Multiply-adds that take as long as the sum of a vector's lanes and its store.
inline constexpr int64_t kSumOfLanes = 8;
/// Elements of the result that get their epilogue at a time, from L1.
inline constexpr int64_t kFinished = 2048;

/// Whether windows of `lines` lines of `length` floats are summed faster along them than along the channels
/// of the result, by the vectors that are multiplied and added for a point: of lines, whose last vector may
/// be mostly empty, and what the sum of the lanes costs, against those along the channels. From 1.4 times as
/// many on, it was faster than oneDNN, by up to 8 (one thread, 28 shapes; AVX-512).
inline bool is_faster_along_windows(int64_t lanes, int64_t lines, int64_t length, int64_t outputs) noexcept {
  const int64_t along_windows = outputs * (lines * ((length + lanes - 1) / lanes) + kSumOfLanes),
                along_channels = lines * length * ((outputs + lanes - 1) / lanes);
  return 5 * along_channels >= 7 * along_windows;
}

/// A result of rows along the last axis, whose points are computed in stretches.
struct NarrowRows {
  const NarrowConvLoops* loops;
  ConvGeometry g;
  Finish finish;
  EpilogueInputs inputs;

  const WindowAxis& last() const noexcept { return g.axes[static_cast<size_t>(g.rank - 1)]; }
  /// Rows of one side, and taps, along the axes before the last one.
  int64_t rows(int64_t WindowAxis::*extent) const noexcept {
    return g.batch * points_of(g, extent, g.rank - 1);
  }
  int64_t lines() const noexcept { return points_of(g, &WindowAxis::kernel, g.rank - 1); }

  /// compute(row, first point in it, points, their results) writes `outputs` elements for each point of
  /// `rows` rows of `width`, of `work` multiply-adds each; they get their epilogue while they are in L1.
  template <class Compute>
  void run_stretches(const Call& call, int64_t rows, int64_t width, int64_t outputs, int64_t work,
                     const Compute& compute) const noexcept {
    const auto operand = [&](int i) { return i >= 0 ? call.in<float>(static_cast<size_t>(i)) : nullptr; };
    float* const y = call.out<float>();
    const int64_t most = std::max<int64_t>(1, kFinished / outputs);
    parallel_for(rows * width, work, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t point = begin; point < end;) {
        const int64_t at = point % width, count = std::min({end - point, width - at, most});
        compute(point / width, at, count, y + point * outputs);
        finish.run_part(y, operand(inputs.bias), operand(inputs.residual), point * outputs,
                        (point + count) * outputs);
        point += count;
      }
    });
  }
};

}  // namespace librt::cpu
