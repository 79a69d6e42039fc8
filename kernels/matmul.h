// Matrix products: what the launcher takes.
#pragma once

#include "kernels/product.h"

namespace rt::cuda {

enum class MatMulWay : uint8_t {
  Plain,      ///< fused multiply-adds in tiles of 64 x 64; any number type
  Tensor64,   ///< tensor cores, f16 and bf16 (sm_80), 64 x 64
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

/// Rows and columns that a block of this way computes, for product_splits().
struct MatMulTile {
  int rows, columns;
};
MatMulTile matmul_tile(MatMulWay way);

}  // namespace rt::cuda
