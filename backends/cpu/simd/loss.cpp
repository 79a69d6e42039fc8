// Cross-entropy of rows of logits, and its gradient. Rows are read from memory once: the second and third
// pass of the forward direction find them in L1 or L2.
#include "backends/cpu/simd/loss.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

RT_INLINE float share_of(const ClassShares& shares, int64_t c) {
  return shares.weights != nullptr ? shares.share * shares.weights[c] : shares.share;
}

RowLoss cross_entropy_row(const float* x, int64_t classes, const ClassShares& shares) {
  float most = reduce_row(x, classes, -__builtin_inff(), Larger{}), sum = 0, smoothed = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) sum += exp_down(x[c] - most);
  most = pick(sum != sum, sum, most);
  const float log_sum = log(sum);
  if (shares.share != 0 && shares.weights != nullptr) {
    const float share = shares.share;
    const float* weights = shares.weights;
#pragma omp simd reduction(+ : smoothed)
    for (int64_t c = 0; c < classes; ++c) smoothed += share * weights[c] * ((x[c] - most) - log_sum);
  } else if (shares.share != 0) {
    const float share = shares.share;
#pragma omp simd reduction(+ : smoothed)
    for (int64_t c = 0; c < classes; ++c) smoothed += share * ((x[c] - most) - log_sum);
  }
  return {most, log_sum, smoothed};
}

/// The gradient at the label.
RT_INLINE float at_label(float x, const RowSlope& row, const ClassShares& shares) {
  const float p = exp((x - row.maximum) - row.log_sum);
  float slope = row.factor * p;
  if (shares.share != 0) slope -= share_of(shares, row.label);
  return row.grad * (slope - row.of_label);
}

void cross_entropy_grad_row(const float* x, float* y, int64_t classes, const RowSlope& row,
                            const ClassShares& shares) {
  if (row.label < 0) {
    for (int64_t c = 0; c < classes; ++c) y[c] = 0;
    return;
  }
  const float most = row.maximum, log_sum = row.log_sum, factor = row.factor, grad = row.grad,
              share = shares.share;
  const float of_label = at_label(x[row.label], row, shares);
  if (share != 0 && shares.weights != nullptr) {
    const float* weights = shares.weights;
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c)
      y[c] = grad * (factor * exp((x[c] - most) - log_sum) - share * weights[c]);
  } else if (share != 0) {
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c) y[c] = grad * (factor * exp((x[c] - most) - log_sum) - share);
  } else {
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c) y[c] = grad * (factor * exp((x[c] - most) - log_sum));
  }
  y[row.label] = of_label;
}

void cross_entropy_columns(const float* x, int64_t classes, int64_t stride, int64_t n,
                           const ClassShares& shares, RowLoss* columns) {
  float most[Simd::kColumns], sum[Simd::kColumns], smoothed[Simd::kColumns];
  for (int64_t i = 0; i < n; ++i) {
    most[i] = -__builtin_inff();
    sum[i] = 0;
    smoothed[i] = 0;
  }
  for (int64_t c = 0; c < classes; ++c) {
    const float* line = x + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) most[i] = line[i] > most[i] ? line[i] : most[i];
  }
  for (int64_t c = 0; c < classes; ++c) {
    const float* line = x + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] += exp_down(line[i] - most[i]);
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    most[i] = pick(sum[i] != sum[i], sum[i], most[i]);
    sum[i] = log(sum[i]);
  }
  for (int64_t c = 0; shares.share != 0 && c < classes; ++c) {
    const float* line = x + c * stride;
    const float share = share_of(shares, c);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) smoothed[i] += share * ((line[i] - most[i]) - sum[i]);
  }
  for (int64_t i = 0; i < n; ++i) columns[i] = {most[i], sum[i], smoothed[i]};
}

void cross_entropy_grad_columns(const float* x, float* y, int64_t classes, int64_t stride, int64_t n,
                                const ClassShares& shares, const RowSlope* columns) {
  float most[Simd::kColumns], log_sum[Simd::kColumns], grad[Simd::kColumns], factor[Simd::kColumns],
      of_label[Simd::kColumns];
  int32_t counts[Simd::kColumns];
  for (int64_t i = 0; i < n; ++i) {
    const RowSlope& column = columns[i];
    most[i] = column.maximum;
    log_sum[i] = column.log_sum;
    grad[i] = column.grad;
    factor[i] = column.factor;
    counts[i] = column.label >= 0 ? 1 : 0;
    of_label[i] = column.label >= 0 ? at_label(x[column.label * stride + i], column, shares) : 0.0f;
  }
  for (int64_t c = 0; c < classes; ++c) {
    const float* line = x + c * stride;
    float* to = y + c * stride;
    const float share = shares.share != 0 ? share_of(shares, c) : 0.0f;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float slope = factor[i] * exp((line[i] - most[i]) - log_sum[i]) - share;
      to[i] = pick(counts[i] != 0, grad[i] * slope, 0.0f);
    }
  }
  for (int64_t i = 0; i < n; ++i)
    if (counts[i] != 0) y[columns[i].label * stride + i] = of_label[i];
}

constexpr LossLoops make_loops() {
  LossLoops table{};
  table.cross_entropy_row = &cross_entropy_row;
  table.cross_entropy_grad_row = &cross_entropy_grad_row;
  table.cross_entropy_columns = &cross_entropy_columns;
  table.cross_entropy_grad_columns = &cross_entropy_grad_columns;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(LossLoops);
