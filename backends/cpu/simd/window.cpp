// Windows along one line of points, each a run of channels: pooling and its gradient.
#include "backends/cpu/simd/window.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "runtime/core/in_build.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

template <bool kMax, class T>
RT_INLINE T combine(T a, T b) {
  if constexpr (kMax)
    return ((a > b) | (a != a)) ? a : b;
  else
    return a + b;
}

template <bool kMax, class T>
void combine_runs(const T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = combine<kMax>(x[i], y[i]);
}

/// Few channels: their count is a compile-time constant.
template <bool kMax, int kWidth, class T>
void pool_narrow(const T* x, T* y, int64_t n, int64_t stride, int64_t taps, int64_t dilation) {
  for (int64_t k = 0; k < taps; ++k) {
    const T* from = x + k * dilation * kWidth;
    if (stride == 2) {
#pragma omp simd
      for (int64_t o = 0; o < n; ++o)
        for (int c = 0; c < kWidth; ++c) {
          const T value = from[o * 2 * kWidth + c];
          y[o * kWidth + c] = k == 0 ? value : combine<kMax>(value, y[o * kWidth + c]);
        }
    } else {
      for (int64_t o = 0; o < n; ++o)
        for (int c = 0; c < kWidth; ++c) {
          const T value = from[o * stride * kWidth + c];
          y[o * kWidth + c] = k == 0 ? value : combine<kMax>(value, y[o * kWidth + c]);
        }
    }
  }
}

/// The channels from c on that fill whole vectors; returns where they end.
template <bool kMax, int kBytes, class T>
RT_INLINE int64_t pool_vectors(const T* x, T* y, int64_t c, int64_t width, int64_t taps, int64_t step) {
  using V = Vector<T, kBytes>;
  for (; c + kLanes<T, kBytes> <= width; c += kLanes<T, kBytes>) {
    V value = load<V>(x + c);
    for (int64_t k = 1; k < taps; ++k) value = combine<kMax>(load<V>(x + k * step + c), value);
    store(y + c, value);
  }
  return c;
}

/// Floor: x is read and y written once; x is in L1.
template <bool kMax, class T>
void pool_row(const T* x, T* y, int64_t n, int64_t width, int64_t stride, int64_t taps, int64_t dilation) {
  if (stride == 1) {
    __builtin_memcpy(y, x, static_cast<size_t>(n * width) * sizeof(T));
    for (int64_t k = 1; k < taps; ++k) combine_runs<kMax>(x + k * dilation * width, y, n * width);
    return;
  }
  switch (width) {
    case 1: return pool_narrow<kMax, 1>(x, y, n, stride, taps, dilation);
    case 2: return pool_narrow<kMax, 2>(x, y, n, stride, taps, dilation);
    case 3: return pool_narrow<kMax, 3>(x, y, n, stride, taps, dilation);
    case 4: return pool_narrow<kMax, 4>(x, y, n, stride, taps, dilation);
    default: break;
  }
  constexpr int kBytes = kVectorBytes < 32 ? kVectorBytes : 32;
  const int64_t step = dilation * width;
  for (int64_t o = 0; o < n; ++o) {
    const T* from = x + o * stride * width;
    T* to = y + o * width;
    int64_t c = pool_vectors<kMax, kBytes>(from, to, 0, width, taps, step);
    if constexpr (sizeof(T) == 1) {
      c = pool_vectors<kMax, 16>(from, to, c, width, taps, step);
      c = pool_vectors<kMax, 8>(from, to, c, width, taps, step);
    }
    for (; c < width; ++c) {
      T value = from[c];
      for (int64_t k = 1; k < taps; ++k) value = combine<kMax>(from[k * step + c], value);
      to[c] = value;
    }
  }
}

/// kCount vectors of channels from i on, of which there are enough before n; returns where they end.
template <bool kMax, int kBytes, int kCount>
RT_INLINE int64_t window_vectors(const float* x, const int64_t* offsets, int64_t count, bool more, float* y,
                                 int64_t i, int64_t n) {
  using V = Vector<float, kBytes>;
  constexpr int64_t kWidth = kLanes<float, kBytes>;
  for (; i + kCount * kWidth <= n; i += kCount * kWidth) {
    V values[kCount];
    for (int v = 0; v < kCount; ++v) values[v] = load<V>((more ? y : x + offsets[0]) + i + v * kWidth);
    for (int64_t k = more ? 0 : 1; k < count; ++k)
      for (int v = 0; v < kCount; ++v)
        values[v] = combine<kMax>(load<V>(x + offsets[k] + i + v * kWidth), values[v]);
    for (int v = 0; v < kCount; ++v) store(y + i + v * kWidth, values[v]);
  }
  return i;
}
/// Floor: x is read and y written once. In groups of vectors, so that the taps' chains overlap.
template <bool kMax>
void pool_window(const float* x, const int64_t* offsets, int64_t count, bool more, float* y, int64_t n) {
  int64_t i = window_vectors<kMax, kVectorBytes, 4>(x, offsets, count, more, y, 0, n);
  i = window_vectors<kMax, kVectorBytes, 1>(x, offsets, count, more, y, i, n);
  i = window_vectors<kMax, 16, 1>(x, offsets, count, more, y, i, n);
  window_vectors<kMax, 4, 1>(x, offsets, count, more, y, i, n);
}

/// One vector of channels, from `start` on; the maximum and its position stay in registers.
template <int kBytes>
RT_INLINE void max_gradient_at(const float* x, const float* g, float* grad, const int64_t* offsets,
                               int64_t count, int64_t start) {
  using V = Vector<float, kBytes>;
  using Indices = Vector<int32_t, kBytes>;
  V best = load<V>(x + offsets[0] + start);
  Indices best_index = {};
  for (int64_t k = 1; k < count; ++k) {
    const V value = load<V>(x + offsets[k] + start);
    const Indices better = (value > best) | ((value != value) & (best == best));
    best = better ? value : best;
    best_index = better ? Indices{} + static_cast<int32_t>(k) : best_index;
  }
  const V gradient = load<V>(g + start);
  for (int64_t k = 0; k < count; ++k) {
    float* to = grad + offsets[k] + start;
    const Indices here = best_index == Indices{} + static_cast<int32_t>(k);
    store(to, load<V>(to) + (here ? gradient : V{}));
  }
}
void max_gradient(const float* x, const float* g, float* grad, const int64_t* offsets, int64_t count,
                  int64_t n) {
  constexpr int64_t kWidth = kLanes<float>;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) max_gradient_at<kVectorBytes>(x, g, grad, offsets, count, i);
  for (; i + 4 <= n; i += 4) max_gradient_at<16>(x, g, grad, offsets, count, i);
  for (; i < n; ++i) max_gradient_at<4>(x, g, grad, offsets, count, i);
}

constexpr WindowLoops make_loops() {
  WindowLoops table{};
  table.pool_row[0] = &pool_row<false, float>;
  table.pool_row[1] = &pool_row<true, float>;
  table.pool_window[0] = &pool_window<false>;
  table.pool_window[1] = &pool_window<true>;
  if constexpr (in_build(DType::I8)) table.max_row_i8 = &pool_row<true, int8_t>;
  if constexpr (in_build(DType::U8)) table.max_row_u8 = &pool_row<true, uint8_t>;
  table.max_gradient = &max_gradient;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(WindowLoops);
