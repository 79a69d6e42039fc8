// CUDA's errors as Status.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/core/status.h"

namespace librt::cuda {

/// Ok, or "what: CUDA's own text".
template <class... Parts>
Status check(cudaError_t error, const Parts&... what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // errors that are not sticky end here
  const Code code = error == cudaErrorMemoryAllocation ? Code::OutOfMemory : Code::Device;
  return Status::make(code, what..., ": ", cudaGetErrorString(error));
}

#define RT_CUDA_TRY(call, ...) RT_TRY(::librt::cuda::check((call), __VA_ARGS__))

}  // namespace librt::cuda
