// Matrix products: what the launcher takes.
#pragma once

#include "kernels/product.h"

namespace rt::cuda {

enum class MatMulWay : uint8_t {
  Plain,      ///< fused multiply-adds in tiles of 64 x 64; any number type
  Tensor64,   ///< tensor cores: f16, bf16 and, rounded to TF32, f32 (both sm_80), 64 x 64
  Tensor128,  ///< 128 x 64
  Vector,     ///< m = 1; f32, f16 and bf16
};

/// first [M,K] (stored [K,M] if transposed), second [K,N] (stored [N,K] if transposed), dense.
struct MatMulArguments {
  ElementType type = ElementType::F32;
  MatMulWay way = MatMulWay::Plain;
  const void *first = nullptr, *second = nullptr;
  bool transposed_first = false, transposed_second = false;
  Product product;
};
cudaError_t matmul(const MatMulArguments& arguments, cudaStream_t stream);

/// a [rows, depth] times the rows of b [columns, depth]: all but the result.
inline MatMulArguments f32_product(const float* a, const float* b, int64_t rows, int64_t columns,
                                   int64_t depth) {
  MatMulArguments arguments{.way = rows == 1 ? MatMulWay::Vector : MatMulWay::Plain,
                            .first = a,
                            .second = b,
                            .transposed_second = true};
  arguments.product.m = static_cast<int>(rows);
  arguments.product.n = static_cast<int>(columns);
  arguments.product.k = static_cast<int>(depth);
  return arguments;
}

/// Rows and columns that a block of this way computes, for product_splits().
struct MatMulTile {
  int rows, columns;
};
MatMulTile matmul_tile(MatMulWay way);

}  // namespace rt::cuda
