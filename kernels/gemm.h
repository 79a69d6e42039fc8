// Shared by matmuls and convolutions: GEMM extents, batches, the epilogue, split-k. Plain C++: host code of
// the backend fills these in.
//
// A GEMM is result[z][m][n] = activation(sum_k first[z][m][k] second[z][n][k] + bias + residual).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"
#include "runtime/core/function.h"

namespace librt::cuda {

struct Epilogue {
  FunctionCall activation;         ///< one of op::Activation
  const void* bias = nullptr;      ///< null: none
  const void* residual = nullptr;  ///< in the result's layout; null: none
  int64_t bias_row = 0, bias_column = 1;
};

/// Offsets of the matrices of a batch: index z decomposed over the extents, innermost last; strides in
/// elements.
struct GemmBatch {
  enum Operand : int { First, Second, Bias, Result, kOperands };
  int rank = 0;
  int64_t extent[kMaxAxes] = {};
  int64_t stride[kOperands][kMaxAxes] = {};
};

struct Gemm {
  int m = 0, n = 0, k = 0;
  int64_t matrices = 1;
  GemmBatch batch;
  void* result = nullptr;
  int64_t result_row = 0;  ///< elements from one row of the result to the next
  Epilogue epilogue;
  /// Split-k: each split is accumulated into its part of `partial` (gemm_partial_bytes), then the parts
  /// are combined in order.
  int splits = 1;
  void* partial = nullptr;
};

size_t gemm_partial_bytes(const Gemm& gemm);
/// The number of k splits so that tiles of rows x columns results occupy the device.
int gemm_splits(const Gemm& gemm, int rows, int columns, int multiprocessors);

/// n / value for n and value below 2^31 (a value of 0 is stored as 1; nothing is divided by it), by a
/// multiplication (Granlund, Montgomery: Division by Invariant Integers using Multiplication, 1994).
struct Divisor {
  uint32_t value = 1, multiplier = 0, shift = 0;
  Divisor() = default;
  explicit Divisor(int64_t divisor) : value(divisor < 1 ? 1 : static_cast<uint32_t>(divisor)) {
    while (shift < 31 && (uint32_t{1} << shift) < value) ++shift;
    multiplier = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - value) / value + 1);
  }
};

}  // namespace librt::cuda
