// Reductions of a row, column-wise accumulation, and the vector updates that pooling, resizing and batch
// normalization are made of. `omp simd` reductions let the compiler keep partial sums per lane.
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

float row_sum(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
float row_prod(const float* x, int64_t n) {
  float product = 1;
#pragma omp simd reduction(* : product)
  for (int64_t i = 0; i < n; ++i) product *= x[i];
  return product;
}
/// Lanes are kept by hand, because the compiler's own max reduction drops NaN.
template <bool kMax>
float row_extreme(const float* x, int64_t n) {
  constexpr int kLanes = 32;
  const float neutral = kMax ? -__builtin_inff() : __builtin_inff();
  float lane[kLanes];
  for (int k = 0; k < kLanes; ++k) lane[k] = neutral;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int k = 0; k < kLanes; ++k) lane[k] = kMax ? maximum(x[i + k], lane[k]) : minimum(x[i + k], lane[k]);
  }
  float best = neutral;
  for (; i < n; ++i) best = kMax ? maximum(x[i], best) : minimum(x[i], best);
  for (int k = 0; k < kLanes; ++k) best = kMax ? maximum(lane[k], best) : minimum(lane[k], best);
  return best;
}

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
void scale_shift(const float* x, float* y, const float* factor, const float* shift, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor[i] + shift[i];
}
void accumulate_squares(float* sum, const float* x, const float* mean, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += (x[i] - mean[i]) * (x[i] - mean[i]);
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

}  // namespace

void fill_rows(Simd& table) noexcept {
  constexpr auto kIndex = [](ReduceFunction function) { return static_cast<int>(function); };
  table.reduce_row[kIndex(ReduceFunction::Sum)] = &row_sum;
  table.reduce_row[kIndex(ReduceFunction::Max)] = &row_extreme<true>;
  table.reduce_row[kIndex(ReduceFunction::Min)] = &row_extreme<false>;
  table.reduce_row[kIndex(ReduceFunction::Prod)] = &row_prod;
  table.accumulate[kIndex(ReduceFunction::Sum)] = &add_to;
  table.accumulate[kIndex(ReduceFunction::Max)] = &max_with;
  table.accumulate[kIndex(ReduceFunction::Min)] = &min_with;
  table.accumulate[kIndex(ReduceFunction::Prod)] = &multiply_by;
  table.axpy = &axpy;
  table.scale = &scale;
  table.scale_shift = &scale_shift;
  table.accumulate_squares = &accumulate_squares;
  table.accumulate_products = &accumulate_products;
  table.combine = &combine;
}

}  // namespace rt::cpu::RT_SIMD_ISA
