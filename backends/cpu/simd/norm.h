// Softmax, layer normalization, mean and variance of columns.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct NormLoops {
  /// y = exp(x - max) / sum, or its logarithm: [1]. y may be x.
  void (*softmax_row[2])(const float* x, float* y, int64_t n);
  /// The same down `extent` rows that are `stride` apart, for n <= kColumns neighbouring
  /// columns. y may be x. copy: null, or a buffer for them all, where they fit into the caches. past_caches:
  /// y is too large for them.
  void (*softmax_columns[2])(const float* x, float* y, int64_t extent, int64_t stride, int64_t n, float* copy,
                             bool past_caches);
  /// y = (x - mean) / sqrt(variance + epsilon) [scale] [+ bias]; scale and bias may be null.
  void (*layer_norm_row)(const float* x, float* y, int64_t n, const float* scale, const float* bias,
                         float epsilon);
  /// The gradient of softmax_row() from its result y, with the sum s of g y: y (g - s); or of its logarithm,
  /// [1], with that of g: g - exp(y) s. grad may be y or g.
  void (*softmax_grad_row[2])(const float* y, const float* g, float* grad, int64_t n);
  /// The same down `extent` rows that are `stride` apart, for n <= kColumns neighbouring columns.
  void (*softmax_grad_columns)(const float* y, const float* g, float* grad, int64_t extent, int64_t stride,
                               int64_t n, bool logarithm);
  /// y = x / sqrt(mean(x^2) + epsilon) [scale]; scale may be null.
  void (*rms_norm_row)(const float* x, float* y, int64_t n, const float* scale, float epsilon);
  /// The gradient of x, which may replace g; adds g z to sum_scale and g to sum_bias, z = (x - mean) /
  /// deviation.
  void (*layer_norm_grad_row)(const float* x, const float* g, float* grad, int64_t n, const float* scale,
                              float epsilon, bool centered, float* sum_scale, float* sum_bias);
  /// Adds x [rows, n] to the statistics count, mean and squares (the sum of squares around the mean), column
  /// by column.
  void (*add_moments)(const float* x, int64_t rows, int64_t n, float* count, float* mean, float* squares);
};
RT_DECLARE_LOOPS(NormLoops);

}  // namespace librt::cpu
