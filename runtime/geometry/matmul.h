// Geometry of MatMul: M, K, N, batch axes, promotion of vector operands.
//
// Knows: shapes, NumPy's rules. Must not know: values, kernels.
#pragma once

#include "runtime/core/shape.h"
#include "runtime/core/status.h"
#include "runtime/graph/op.h"

namespace librt {

/// result[batch.., M, N] = a[.., M, K] b[.., K, N]. A vector a is a row (m = 1), a vector b a column (n = 1);
/// the added axis is dropped from the result, and transposing a vector has no effect.
struct MatMulGeometry {
  int64_t m = 1;
  int64_t k = 1;
  int64_t n = 1;
  Shape batch;               ///< broadcast of a_batch and b_batch
  Shape a_batch;             ///< leading axes of a
  Shape b_batch;             ///< leading axes of b
  bool transpose_a = false;  ///< each matrix of a is stored [K, M]
  bool transpose_b = false;  ///< each matrix of b is stored [N, K]
  Shape result;

  /// Index of the operand matrix (of leading axes operand_batch) that result matrix `index` is computed from.
  int64_t operand_index(const Shape& operand_batch, int64_t index) const noexcept {
    int64_t out = 0, step = 1;
    int axis = operand_batch.rank() - 1;
    for (int i = batch.rank() - 1; i >= 0 && axis >= 0; --i, --axis) {
      if (operand_batch[axis] != 1) out += index % batch[i] * step;
      step *= operand_batch[axis];
      index /= batch[i];
    }
    return out;
  }
};

Result<MatMulGeometry> matmul_geometry(const Shape& a, const Shape& b,
                                       const op::MatMulAttributes& attributes);

}  // namespace librt
