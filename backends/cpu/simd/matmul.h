// GEMV: a vector times a matrix.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct MatMulLoops {
  /// y[j] = sum over i of a[i] b[i * stride + j], j < n, i < k.
  void (*vector_matrix)(const float* a, const float* b, int64_t stride, float* y, int64_t k, int64_t n);
  /// y[j] = sum over i of b[j * stride + i] a[i].
  void (*matrix_vector)(const float* b, int64_t stride, const float* a, float* y, int64_t n, int64_t k);
};
RT_DECLARE_LOOPS(MatMulLoops);

}  // namespace librt::cpu
