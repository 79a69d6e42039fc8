// GEMV: a vector times a matrix.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct MatMulLoops {
  /// Matrices of more elements are too large for a core's caches, where rows should be read to their ends.
  static constexpr int64_t kCached = 1 << 17;
  /// Columns whose sums stay in L1.
  static constexpr int64_t kStretch = 2048;

  /// y[j] = sum over i of a[i] b[i * stride + j], j < n, i < k.
  void (*vector_matrix)(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n);
  /// The same for n <= kStretch columns of a large matrix.
  void (*vector_rows)(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n);
  /// y[j] = sum over i of b[j * stride + i] a[i].
  void (*matrix_vector)(const float* b, int64_t stride, const float* a, float* y, int64_t n, int64_t k);
};
RT_DECLARE_LOOPS(MatMulLoops);

}  // namespace librt::cpu
