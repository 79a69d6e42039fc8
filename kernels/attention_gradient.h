// Gradients of attention: launcher arguments.
#pragma once

#include "kernels/attention.h"

namespace librt::cuda {

/// `attention`: the arguments of the forward pass, with its result y; splits and partial are ignored.
struct AttentionGradArguments {
  AttentionArguments attention;
  const void* grad_y = nullptr;
  void *grad_query = nullptr, *grad_key = nullptr, *grad_value = nullptr;
  float* statistics = nullptr;  ///< scratch: attention_statistics_bytes()
};
cudaError_t attention_gradient(const AttentionGradArguments& g, cudaStream_t stream);
size_t attention_statistics_bytes(const AttentionArguments& arguments);

}  // namespace librt::cuda
