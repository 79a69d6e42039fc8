// The transforms of Winograd's convolution F(4x4, 3x3) on vectors of channels. Only included by the sources
// of this directory.
#pragma once

#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {

// --- the 1-D transforms of six, four or three values

/// B' x
template <class V>
RT_INLINE void patch_points(const V* x, int64_t step, V* y, int64_t y_step) {
  const V x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step], x5 = x[5 * step];
  const V even = x4 - 4.0f * x2, odd = x3 - 4.0f * x1, outer = x4 - x2, inner = 2.0f * (x3 - x1);
  y[0] = 4.0f * x0 - 5.0f * x2 + x4;
  y[y_step] = even + odd;
  y[2 * y_step] = even - odd;
  y[3 * y_step] = outer + inner;
  y[4 * y_step] = outer - inner;
  y[5 * y_step] = 4.0f * x1 - 5.0f * x3 + x5;
}
/// A' x
template <class V>
RT_INLINE void points_results(const V* x, int64_t step, V* y, int64_t y_step) {
  const V sum1 = x[step] + x[2 * step], difference1 = x[step] - x[2 * step];
  const V sum2 = x[3 * step] + x[4 * step], difference2 = x[3 * step] - x[4 * step];
  y[0] = x[0] + sum1 + sum2;
  y[y_step] = difference1 + 2.0f * difference2;
  y[2 * y_step] = sum1 + 4.0f * sum2;
  y[3 * y_step] = difference1 + 8.0f * difference2 + x[5 * step];
}
/// A y
template <class V>
RT_INLINE void result_points(const V* x, int64_t step, V* y, int64_t y_step) {
  const V even1 = x[0] + x[2 * step], odd1 = x[step] + x[3 * step];
  const V even2 = x[0] + 4.0f * x[2 * step], odd2 = 2.0f * x[step] + 8.0f * x[3 * step];
  y[0] = x[0];
  y[y_step] = even1 + odd1;
  y[2 * y_step] = even1 - odd1;
  y[3 * y_step] = even2 + odd2;
  y[4 * y_step] = even2 - odd2;
  y[5 * y_step] = x[3 * step];
}
/// G g
template <class V>
RT_INLINE void weight_points(const V* x, int64_t step, V* y, int64_t y_step) {
  const V outer = x[0] + x[2 * step], wide = x[0] + 4.0f * x[2 * step];
  y[0] = 0.25f * x[0];
  y[y_step] = (-1.0f / 6) * (outer + x[step]);
  y[2 * y_step] = (-1.0f / 6) * (outer - x[step]);
  y[3 * y_step] = (1.0f / 24) * (wide + 2.0f * x[step]);
  y[4 * y_step] = (1.0f / 24) * (wide - 2.0f * x[step]);
  y[5 * y_step] = x[2 * step];
}
/// G' x
template <class V>
RT_INLINE void points_weights(const V* x, int64_t step, V* y, int64_t y_step) {
  const V sum1 = x[step] + x[2 * step], difference1 = x[2 * step] - x[step];
  const V sum2 = x[3 * step] + x[4 * step], difference2 = x[3 * step] - x[4 * step];
  y[0] = 0.25f * x[0] - (1.0f / 6) * sum1 + (1.0f / 24) * sum2;
  y[y_step] = (1.0f / 6) * difference1 + (1.0f / 12) * difference2;
  y[2 * y_step] = (1.0f / 6) * (sum2 - sum1) + x[5 * step];
}

/// The 2-D transform from 1-D ones: kFrom x kFrom vectors to kTo x kTo.
template <int kFrom, int kTo, auto kTransform, class V>
RT_INLINE void both_ways(const V* x, V* y) {
  V between[kTo * kFrom];
  for (int64_t i = 0; i < kFrom; ++i) kTransform(x + i, kFrom, between + i, kFrom);
  for (int64_t i = 0; i < kTo; ++i) kTransform(between + i * kFrom, 1, y + i * kTo, 1);
}

/// The kSize x kSize vectors of an image from (row, column) on, 0 outside.
template <int kSize, class V>
RT_INLINE void load_window(const float* image, int64_t height, int64_t width, int64_t channels, int64_t row,
                           int64_t column, V* to) {
  for (int64_t i = 0; i < kSize; ++i)
    for (int64_t k = 0; k < kSize; ++k) {
      const bool inside = row + i >= 0 && row + i < height && column + k >= 0 && column + k < width;
      to[i * kSize + k] = inside ? load<V>(image + ((row + i) * width + column + k) * channels) : V{};
    }
}

}  // namespace librt::cpu::RT_SIMD_ISA
