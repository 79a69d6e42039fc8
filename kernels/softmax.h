// Softmax and LogSoftmax: launcher arguments.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"

namespace librt::cuda {

/// x, y [outer,extent,inner]; the softmax is over `extent`. y may be x.
struct SoftmaxArguments {
  ElementType type = ElementType::F32;  ///< a float type
  const void* x = nullptr;
  void* y = nullptr;
  int64_t outer = 0, extent = 0, inner = 0;
  bool logarithm = false;
};
cudaError_t softmax(const SoftmaxArguments& arguments, cudaStream_t stream);

/// The gradient of x from the softmax y in a.x, into a.y, which may be y or grad_y: y (g - sum g y), or of
/// its logarithm g - exp(y) sum g.
cudaError_t softmax_grad(const SoftmaxArguments& a, const void* grad_y, cudaStream_t stream);

}  // namespace librt::cuda
