// Pools and their gradients: launcher arguments. Everything is [N,S1,S2,S3,C].
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"

namespace librt::cuda {

/// Always three spatial axes; missing ones have extent and kernel 1. A sample has fewer than 2^31 elements.
struct PoolExtents {
  int64_t batch = 0;
  int channels = 0;
  int input[3] = {1, 1, 1}, output[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int pad[3] = {}, dilation[3] = {1, 1, 1};
  /// The divisor of an average is the number of taps in [count_first, count_last) of each axis.
  int count_first[3] = {}, count_last[3] = {};
};

struct PoolArguments {
  ElementType type = ElementType::F32;
  const void* x = nullptr;  ///< unused by the gradients of averages
  const void* grad = nullptr;
  void* y = nullptr;          ///< the result of the pool or the gradient
  int32_t* where = nullptr;   ///< scratch of max_pool_grad: one index per element of the pool's output
  bool column_major = false;  ///< max_pool_indices
  PoolExtents windows;
};

/// Any numeric type.
cudaError_t max_pool(const PoolArguments& arguments, cudaStream_t stream);
/// y i64: positions in the flattened [N,C,S..] (column-major over S if column_major). Any numeric type.
cudaError_t max_pool_indices(const PoolArguments& arguments, cudaStream_t stream);
/// Floats. Averages are accumulated in f32 (f64 for f64).
cudaError_t average_pool(const PoolArguments& arguments, cudaStream_t stream);
/// Each window's gradient goes to its first maximum. Floats.
cudaError_t max_pool_grad(const PoolArguments& arguments, cudaStream_t stream);
cudaError_t average_pool_grad(const PoolArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
