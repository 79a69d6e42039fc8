// y = f(x), elementwise. y may alias x.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"
#include "runtime/core/function.h"

namespace librt::cuda {

struct UnaryArguments {
  ElementType type;  ///< integers: Abs, Neg, Relu, Sign, Clip; bool: Not
  FunctionCall call;
  const void* x;
  void* y;
  int64_t count;
};
cudaError_t unary(const UnaryArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
