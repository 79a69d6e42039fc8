// Softmax, layer normalization, mean and variance of columns.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct NormLoops {
  /// y = exp(x - max) / sum, or its logarithm.
  void (*softmax_row)(const float* x, float* y, int64_t n, bool logarithm);
  /// The same (its logarithm: [1]) down `extent` rows that are `stride` apart, for n <= kColumns neighbouring
  /// columns. y may be x. copy: null, or a buffer for them all, where they fit into the caches. past_caches:
  /// y is too large for them.
  void (*softmax_columns[2])(const float* x, float* y, int64_t extent, int64_t stride, int64_t n, float* copy,
                             bool past_caches);
  /// y = (x - mean) / sqrt(variance + epsilon) [scale] [+ bias]; scale and bias may be null.
  void (*layer_norm_row)(const float* x, float* y, int64_t n, const float* scale, const float* bias,
                         float epsilon);
  /// Adds x [rows, n] to the statistics count, mean and squares (the sum of squares around the mean), column
  /// by column.
  void (*add_moments)(const float* x, int64_t rows, int64_t n, float* count, float* mean, float* squares);
};
RT_DECLARE_LOOPS(NormLoops);

}  // namespace librt::cpu
