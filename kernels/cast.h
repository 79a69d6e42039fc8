// y = x in another type. Floats to integers: toward zero, saturated, NaN to 0. Integers to integers: the low
// bits. To bool: != 0.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"

namespace librt::cuda {

struct CastArguments {
  ElementType from, to;
  const void* x;
  void* y;
  int64_t count;
};
cudaError_t cast(const CastArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
