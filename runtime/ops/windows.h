// The loop over the windows of a convolution or pool, written once.
//
// Knows: geometry. Must not know: what is done with the elements.
#pragma once

#include <array>

#include "runtime/geometry/windows.h"

namespace librt::ops {

using WindowAxes = std::array<WindowAxis, kMaxSpatialRank>;

inline int64_t input_positions(const WindowAxes& axes) noexcept {
  return axes[0].input * axes[1].input * axes[2].input;
}
inline int64_t output_positions(const WindowAxes& axes) noexcept {
  return axes[0].output * axes[1].output * axes[2].output;
}
inline int64_t tap_count(const WindowAxes& axes) noexcept {
  return axes[0].kernel * axes[1].kernel * axes[2].kernel;
}

/// The taps of a window that fall inside the input: [first, last).
struct TapRange {
  int64_t first = 0;
  int64_t last = 0;
};
inline TapRange taps_inside(const WindowAxis& axis, int64_t window) noexcept {
  const int64_t start = axis.position(window, 0);
  const int64_t first = start >= 0 ? 0 : (axis.dilation - 1 - start) / axis.dilation;
  const int64_t end = start >= axis.input ? 0 : (axis.input - start + axis.dilation - 1) / axis.dilation;
  return {first, end < axis.kernel ? end : axis.kernel};
}

/// Calls visit(window, tap, position) for every tap that reads inside the input: flat indices of the window,
/// the tap in the kernel and the input position. Windows in order; a window's taps in order. Axes beyond the
/// geometry's rank are trivial, so that one loop nest serves all ranks.
template <class Visit>
void for_each_tap(const WindowAxes& axes, Visit&& visit) {
  const auto& [a, b, c] = axes;
  int64_t window = 0;
  for (int64_t i = 0; i < a.output; ++i)
    for (int64_t j = 0; j < b.output; ++j)
      for (int64_t k = 0; k < c.output; ++k, ++window) {
        const TapRange ti = taps_inside(a, i), tj = taps_inside(b, j), tk = taps_inside(c, k);
        for (int64_t p = ti.first; p < ti.last; ++p)
          for (int64_t q = tj.first; q < tj.last; ++q)
            for (int64_t r = tk.first; r < tk.last; ++r)
              visit(window, (p * b.kernel + q) * c.kernel + r,
                    (a.position(i, p) * b.input + b.position(j, q)) * c.input + c.position(k, r));
      }
}

/// Calls visit(window, i, j, k) for every window.
template <class Visit>
void for_each_window(const WindowAxes& axes, Visit&& visit) {
  int64_t window = 0;
  for (int64_t i = 0; i < axes[0].output; ++i)
    for (int64_t j = 0; j < axes[1].output; ++j)
      for (int64_t k = 0; k < axes[2].output; ++k) visit(window++, i, j, k);
}

}  // namespace librt::ops
