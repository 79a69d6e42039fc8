// Attention on tensor cores, selected by attention() in attention.cu.
#pragma once

#include "kernels/attention.h"

namespace librt::cuda {

/// Rows per block.
inline constexpr int kTensorAttentionRows = 64;

/// Writes y, or with splits > 1 the partial results.
cudaError_t attention_tensor(const AttentionArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
