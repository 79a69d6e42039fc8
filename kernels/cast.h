// y = x in another type: floats to integers toward zero, saturated, NaN to 0; integers to integers the low
// bits; to bool
// != 0.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"

namespace rt::cuda {

struct CastArguments {
  ElementType from, to;
  const void* x;
  void* y;
  int64_t count;
};
cudaError_t cast(const CastArguments& arguments, cudaStream_t stream);

}  // namespace rt::cuda
