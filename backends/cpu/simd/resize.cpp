#include "backends/cpu/simd/resize.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

template <int kTaps>
void resize_taps(const float* x, const int32_t* index, const float* weight, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int t = 0; t < kTaps; ++t) {
      const float w = weight[t * n + i], value = x[index[t * n + i]];
      sum += w == 0.0f ? 0.0f : w * value;
    }
    y[i] = sum;
  }
}
void resize_row(const float* x, const int32_t* index, const float* weight, int64_t taps, float* y,
                int64_t n) {
  if (taps == 2) return resize_taps<2>(x, index, weight, y, n);
  if (taps == 4) return resize_taps<4>(x, index, weight, y, n);
  resize_taps<1>(x, index, weight, y, n);
  for (int64_t t = 1; t < taps; ++t) {
    const float* weights = weight + t * n;
    const int32_t* indices = index + t * n;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float value = x[indices[i]];
      y[i] += weights[i] == 0.0f ? 0.0f : weights[i] * value;
    }
  }
}

/// The sum of a point's vector stays in a register: a call for each point took 30 ns, as long as 200
/// channels.
void resize_points(const float* x, const int32_t* index, const float* weight, int64_t taps, int64_t points,
                   int64_t channels, float* y) {
  for (int64_t i = 0; i < points; ++i, y += channels)
    for_vectors(
        channels, [&](auto at) __attribute__((always_inline)) {
          Vector<float> sum{};
          for (int64_t t = i; t < taps * points; t += points)
            if (weight[t] != 0.0f) sum += weight[t] * at.load(x + index[t] * channels);
          at.store(y, sum);
        });
}

/// Along one axis: the two points around each coordinate.
void linear_axis(const float* coordinates, const LinearGrid& grid, int d, int64_t n,
                 int32_t (*index)[kMostGridPoints], float (*weight)[kMostGridPoints]) {
  const double scale = grid.scale[d], shift = grid.shift[d], last = grid.extent[d] - 1;
  const double least = grid.to_border ? 0 : -9, most = grid.to_border ? last : last + 9;
  const int64_t stride = grid.axes;
  coordinates += stride - 1 - d;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const double at = coordinates[i * stride] * scale + shift;
    const double raised = at > least ? at : least;  // also NaN
    const double x = raised < most ? raised : most;
    const auto truncated = static_cast<int32_t>(x);
    const int32_t first = truncated - (truncated > x ? 1 : 0), second = first + 1;
    const auto rest = static_cast<float>(x - first);
    const bool has_first = (first >= 0) & (first < grid.extent[d]),
               has_second = (second >= 0) & (second < grid.extent[d]);
    index[0][i] = has_first ? first : 0;
    index[1][i] = has_second ? second : 0;
    weight[0][i] = has_first ? 1.0f - rest : 0.0f;
    weight[1][i] = has_second ? rest : 0.0f;
  }
}

void linear_taps(const float* coordinates, const LinearGrid& grid, int64_t n, int32_t* index, float* weight) {
  int32_t at[2][kMostGridPoints];
  float part[2][kMostGridPoints];
  for (int64_t i = 0; i < n; ++i) {
    index[i] = 0;
    weight[i] = 1;
  }
  for (int d = 0; d < grid.axes; ++d) {
    linear_axis(coordinates, grid, d, n, at, part);
    const int32_t extent = grid.extent[d];
    // Taps 2 t and 2 t + 1 take the place of tap t, from the last one on.
    for (int64_t t = (int64_t{1} << d) - 1; t >= 0; --t)
      for (int side = 1; side >= 0; --side) {
        int32_t* to_index = index + (2 * t + side) * n;
        float* to_weight = weight + (2 * t + side) * n;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) {
          to_index[i] = index[t * n + i] * extent + at[side][i];
          to_weight[i] = weight[t * n + i] * part[side][i];
        }
      }
  }
}

constexpr ResizeLoops make_loops() {
  return {.resize_row = &resize_row, .resize_points = &resize_points, .linear_taps = &linear_taps};
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(ResizeLoops);
