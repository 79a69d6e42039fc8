// Gradients of attention: what the launcher takes.
#pragma once

#include "kernels/attention.h"

namespace rt::cuda {

/// `attention` as it was computed, with its result y; splits and partial do not count.
struct AttentionGradArguments {
  AttentionArguments attention;
  const void* grad_y = nullptr;
  void *grad_query = nullptr, *grad_key = nullptr, *grad_value = nullptr;
  float* statistics = nullptr;  ///< scratch: attention_statistics_bytes()
};
cudaError_t attention_gradient(const AttentionGradArguments& arguments, cudaStream_t stream);
size_t attention_statistics_bytes(const AttentionArguments& arguments);

}  // namespace rt::cuda
