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

constexpr ResizeLoops make_loops() {
  return {.resize_row = &resize_row, .resize_points = &resize_points};
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(ResizeLoops);
