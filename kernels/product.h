// What the products (MatMul, the convolutions) have in common: extents, batches, the epilogue, how the work
// is cut. Plain C++: host code of the backend fills these in.
//
// A product is result[z][m][n] = activation(sum_k first[z][m][k] second[z][n][k] + bias + residual).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/functions.h"
#include "kernels/types.h"

namespace rt::cuda {

struct Epilogue {
  FunctionCall activation;         ///< one of op::Activation's
  const void* bias = nullptr;      ///< null: none
  const void* residual = nullptr;  ///< of the result's layout; null: none
  int64_t bias_row = 0, bias_column = 1;
};

/// Where the matrices of a batch begin: index z decomposed over the extents, innermost last; strides in
/// elements.
struct ProductBatch {
  enum Operand : int { First, Second, Bias, Result, kOperands };
  int rank = 0;
  int64_t extent[kMaxAxes] = {};
  int64_t stride[kOperands][kMaxAxes] = {};
};

struct Product {
  int m = 0, n = 0, k = 0;
  int64_t matrices = 1;
  ProductBatch batch;
  void* result = nullptr;
  int64_t result_row = 0;  ///< elements from one row of the result to the next
  Epilogue epilogue;
  /// Parts of k that are summed one after the other into `partial` (product_partial_bytes) and then joined in
  /// order.
  int splits = 1;
  void* partial = nullptr;
};

size_t product_partial_bytes(const Product& product);
/// Into how many parts to cut k so that tiles of rows x columns results occupy the device.
int product_splits(const Product& product, int rows, int columns, int multiprocessors);

/// For n / value with n and value below 2^31 (1 stands for 0, where nothing is divided) by a multiplication
/// (Granlund, Montgomery: Division by Invariant Integers using Multiplication, 1994).
struct Divisor {
  uint32_t value = 1, multiplier = 0, shift = 0;
  Divisor() = default;
  explicit Divisor(int64_t divisor) : value(divisor < 1 ? 1 : static_cast<uint32_t>(divisor)) {
    while (shift < 31 && (uint32_t{1} << shift) < value) ++shift;
    multiplier = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - value) / value + 1);
  }
};

}  // namespace rt::cuda
