// Attention on tensor cores: what attention() in attention.cu chooses.
#pragma once

#include "kernels/attention.h"

namespace rt::cuda {

/// Rows of one block.
inline constexpr int kTensorAttentionRows = 64;

/// Writes y, or with splits > 1 the partial results.
cudaError_t attention_tensor(const AttentionArguments& arguments, cudaStream_t stream);

}  // namespace rt::cuda
