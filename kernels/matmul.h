// Matmul: launcher arguments.
#pragma once

#include "kernels/gemm.h"

namespace librt::cuda {

enum class MatMulAlgorithm : uint8_t {
  Plain,      ///< FMAs on CUDA cores, tiles of 64 x 64; any numeric type
  Tensor64,   ///< tensor cores: f16, bf16 and f32 rounded to TF32 (the latter two need sm_80), 64 x 64
  Tensor128,  ///< 128 x 64
  Vector,     ///< m = 1; f32, f16 and bf16
};

/// first [M,K] (stored [K,M] if transposed), second [K,N] (stored [N,K] if transposed), dense.
struct MatMulArguments {
  ElementType type = ElementType::F32;
  MatMulAlgorithm algorithm = MatMulAlgorithm::Plain;
  const void *first = nullptr, *second = nullptr;
  bool transposed_first = false, transposed_second = false;
  Gemm gemm;
};
cudaError_t matmul(const MatMulArguments& arguments, cudaStream_t stream);

/// a [rows, depth] times b [columns, depth] transposed: all arguments but the result.
inline MatMulArguments f32_gemm(const float* a, const float* b, int64_t rows, int64_t columns,
                                int64_t depth) {
  MatMulArguments arguments{.algorithm = rows == 1 ? MatMulAlgorithm::Vector : MatMulAlgorithm::Plain,
                            .first = a,
                            .second = b,
                            .transposed_second = true};
  arguments.gemm.m = static_cast<int>(rows);
  arguments.gemm.n = static_cast<int>(columns);
  arguments.gemm.k = static_cast<int>(depth);
  return arguments;
}

/// Tile rows and columns per block of this kernel, for gemm_splits().
struct MatMulTile {
  int rows, columns;
};
MatMulTile matmul_tile(MatMulAlgorithm algorithm);

}  // namespace librt::cuda
