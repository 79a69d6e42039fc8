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
/// Elements of the result that get their epilogue at a time, from L1.
inline constexpr int64_t kFinished = 2048;

/// Whether the loops can compute it, and sum points of `lines` lines of `length` floats faster along them
/// than along the `outputs` channels of the result; beats_all: they are faster whatever the numbers.
Status supports_lines(const NarrowConvLoops& loops, const ConvGeometry& g, int64_t outputs, int64_t lines,
                      int64_t length, bool beats_all = false);

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

  /// The rows of x that row `row` of y meets, along the axes before the last one, each of row_floats, with
  /// the weights of their lines of taps, each of line_floats. to, from: the extents of y and x. meets(axis,
  /// position in y, tap) is the position in x; negative or beyond its extent: none. Returns their number.
  template <class Meets>
  int64_t lines_of(int64_t row, int64_t WindowAxis::*to, int64_t WindowAxis::*from, const float* x,
                   int64_t row_floats, const float* weight, int64_t line_floats, const Meets& meets,
                   NarrowLine* found) const noexcept {
    int64_t count = 0;
    const int64_t all = lines();
    for (int64_t line = 0; line < all; ++line) {
      int64_t place = row, tap = line, index = 0, stride = 1;
      bool inside = true;
      for (int i = g.rank - 1; i-- > 0;) {
        const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
        const int64_t at = meets(axis, place % (axis.*to), tap % axis.kernel);
        inside = inside && at >= 0 && at < axis.*from;
        index += at * stride;
        stride *= axis.*from;
        place /= axis.*to;
        tap /= axis.kernel;
      }
      if (inside) found[count++] = {x + (place * stride + index) * row_floats, weight + line * line_floats};
    }
    return count;
  }

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
