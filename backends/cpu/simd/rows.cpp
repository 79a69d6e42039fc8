// Column-wise accumulation, and the vector updates used by pooling, resizing and batch normalization.
#include "backends/cpu/simd/rows.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

void add_to(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}
void multiply_by(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] *= x[i];
}
void max_with(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = maximum(x[i], y[i]);
}
void min_with(float* y, const float* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = minimum(x[i], y[i]);
}
void axpy(float* y, const float* x, float a, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}
void scale(float* y, const float* x, float a, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a * x[i];
}
template <int kCount>
RT_INLINE void add_weighted(const float* const* x, const float* weight, bool first, float* y, int64_t n) {
  const float *a = x[0], *b = x[kCount > 1 ? 1 : 0], *c = x[kCount > 2 ? 2 : 0], *d = x[kCount > 3 ? 3 : 0];
  const float wa = weight[0], wb = weight[kCount > 1 ? 1 : 0], wc = weight[kCount > 2 ? 2 : 0],
              wd = weight[kCount > 3 ? 3 : 0];
  const auto sum = [=](int64_t i) __attribute__((always_inline)) {
    float value = wa * a[i];
    if constexpr (kCount > 1) value += wb * b[i];
    if constexpr (kCount > 2) value += wc * c[i];
    if constexpr (kCount > 3) value += wd * d[i];
    return value;
  };
  if (first) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = sum(i);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] += sum(i);
  }
}
/// Four at a time, so that accumulators stay in registers.
void weighted_sum(const float* const* x, const float* weight, int64_t count, float* y, int64_t n) {
  for (int64_t k = 0; k < count; k += 4) {
    switch (count - k) {
      case 1: add_weighted<1>(x + k, weight + k, k == 0, y, n); break;
      case 2: add_weighted<2>(x + k, weight + k, k == 0, y, n); break;
      case 3: add_weighted<3>(x + k, weight + k, k == 0, y, n); break;
      default: add_weighted<4>(x + k, weight + k, k == 0, y, n);
    }
  }
}
void scale_shift(const float* x, float* y, const float* factor, const float* shift, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor[i] + shift[i];
}
void accumulate_products(float* sum_g, float* sum_gx, const float* g, const float* x, const float* mean,
                         int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    sum_g[i] += g[i];
    sum_gx[i] += g[i] * (x[i] - mean[i]);
  }
}
void combine(float* y, const float* g, const float* x, const float* a, const float* b, const float* c,
             int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * g[i] + b[i] * x[i] + c[i];
}

constexpr RowLoops make_loops() {
  RowLoops table{};
  constexpr auto kIndex = [](ReduceFunction function) { return static_cast<int>(function); };
  table.accumulate[kIndex(ReduceFunction::Sum)] = &add_to;
  table.accumulate[kIndex(ReduceFunction::Max)] = &max_with;
  table.accumulate[kIndex(ReduceFunction::Min)] = &min_with;
  table.accumulate[kIndex(ReduceFunction::Prod)] = &multiply_by;
  table.weighted_sum = &weighted_sum;
  table.axpy = &axpy;
  table.scale = &scale;
  table.scale_shift = &scale_shift;
  table.accumulate_products = &accumulate_products;
  table.combine = &combine;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(RowLoops);
