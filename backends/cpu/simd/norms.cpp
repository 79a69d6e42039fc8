// Softmax and layer normalization of one row.
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

float row_max(const float* x, int64_t n) {
  float best = -__builtin_inff();
#pragma omp simd reduction(max : best)
  for (int64_t i = 0; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

/// max first, so that no exponential overflows; then exp(x - max) is stored while it is summed.
void softmax_row(const float* x, float* y, int64_t n, bool logarithm) {
  const float most = row_max(x, n);
  float sum = 0;
  if (logarithm) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += exp_down(x[i] - most);
    const float shift = log(sum);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - most) - shift;
    return;
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const float e = exp_down(x[i] - most);
    y[i] = e;
    sum += e;
  }
  const float factor = 1.0f / sum;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

/// Down columns. Where `copy` is not null, [extent, n] floats of it stay in the caches between the passes:
/// the rows of x and y, far apart, would not.
void softmax_columns(const float* x, float* y, int64_t extent, int64_t stride, int64_t n, bool logarithm,
                     float* copy) {
  float most[Simd::kColumns], sum[Simd::kColumns];
  for (int64_t i = 0; i < n; ++i) {
    most[i] = -__builtin_inff();
    sum[i] = 0;
  }
  const int64_t between_stride = copy != nullptr ? n : stride;
  for (int64_t k = 0; k < extent; ++k) {
    const float* row = x + k * stride;
    float* kept = copy != nullptr ? copy + k * n : nullptr;
    if (kept != nullptr) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) kept[i] = row[i];
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) most[i] = row[i] > most[i] ? row[i] : most[i];
  }
  const float* from = copy != nullptr ? copy : x;
  float* between = copy != nullptr ? copy : y;
  for (int64_t k = 0; k < extent; ++k) {
    const float* row = from + k * between_stride;
    if (logarithm) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) sum[i] += exp_down(row[i] - most[i]);
    } else {
      float* out = between + k * between_stride;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const float e = exp_down(row[i] - most[i]);
        out[i] = e;
        sum[i] += e;
      }
    }
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] = logarithm ? log(sum[i]) : 1.0f / sum[i];
  for (int64_t k = 0; k < extent; ++k) {
    float* out = y + k * stride;
    if (logarithm) {
      const float* row = from + k * between_stride;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = (row[i] - most[i]) - sum[i];
    } else {
      const float* row = between + k * between_stride;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = row[i] * sum[i];
    }
  }
}

/// Two passes over the row in cache: the mean, then the squares around it, which do not cancel.
void layer_norm_row(const float* x, float* y, int64_t n, const float* factor, const float* bias,
                    float epsilon) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float inverse = 1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon);
  if (factor != nullptr && bias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * factor[i] + bias[i];
  } else if (factor != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * factor[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse + (bias != nullptr ? bias[i] : 0.0f);
  }
}

}  // namespace

void fill_norms(Simd& table) noexcept {
  table.softmax_row = &softmax_row;
  table.softmax_columns = &softmax_columns;
  table.layer_norm_row = &layer_norm_row;
}

}  // namespace rt::cpu::RT_SIMD_ISA
