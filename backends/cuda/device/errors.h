// CUDA's errors as Status.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/core/status.h"

namespace librt::cuda {

/// Errors after which every further call of this process fails (CUDA Runtime API, cudaError_t).
constexpr bool is_lost(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorExternalDevice: return true;
    default: return false;
  }
}

/// Ok, or "what: CUDA's own text".
template <class... Parts>
Status check(cudaError_t error, const Parts&... what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // errors that are not sticky end here
  if (is_lost(error))
    return Status::make(Code::DeviceLost, what..., ": ", cudaGetErrorString(error),
                        "; this process cannot use the device any more: restart it");
  const Code code = error == cudaErrorMemoryAllocation ? Code::OutOfMemory : Code::Device;
  return Status::make(code, what..., ": ", cudaGetErrorString(error));
}

#define RT_CUDA_TRY(call, ...) RT_TRY(::librt::cuda::check((call), __VA_ARGS__))

}  // namespace librt::cuda
