// Windows along one line of points: pooling and its gradient.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct WindowLoops {
  /// y[o width + c] = a sum [0] or the maximum [1] over k < taps of x[(o stride + k dilation) width + c], o <
  /// n; taps > 0. A NaN is the maximum.
  template <class T>
  using PoolRow = void (*)(const T* x, T* y, int64_t n, int64_t width, int64_t stride, int64_t taps,
                           int64_t dilation);
  PoolRow<float> pool_row[2];
  /// y[i] = a sum [0] or the maximum [1] over k < count of x[offsets[k] + i], and with `more` of y[i]; i < n.
  void (*pool_window[2])(const float* x, const int64_t* offsets, int64_t count, bool more, float* y,
                         int64_t n);
  PoolRow<int8_t> max_row_i8;
  PoolRow<uint8_t> max_row_u8;
  /// grad[offsets[k] + i] += g[i] for the first k < count where x[offsets[k] + i] is largest; a NaN is.
  void (*max_gradient)(const float* x, const float* g, float* grad, const int64_t* offsets, int64_t count,
                       int64_t n);
};
RT_DECLARE_LOOPS(WindowLoops);

}  // namespace librt::cpu
