// Decision trees: the nodes that rows of features reach.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

/// As TreeLeaves in schema/ops.fbs. x and threshold are f32 or f64.
struct TreeLeavesArguments {
  const void* x = nullptr;  ///< [rows, features]
  const int32_t* nodes = nullptr;
  const void* threshold = nullptr;
  const int32_t* roots = nullptr;
  int32_t* leaves = nullptr;  ///< [rows, trees]
  ElementType type = ElementType::F32;
  int64_t rows = 0, features = 1, count = 1, trees = 0, levels = 0;
};

cudaError_t tree_leaves(const TreeLeavesArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
