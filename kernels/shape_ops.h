// Values that do not depend on data: constant fill, and arithmetic sequences.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

/// Every element becomes the first `unit` bytes of `bits`: 1, 2, 4 or 8.
cudaError_t fill(void* result, uint64_t bits, int unit, int64_t count, cudaStream_t stream);

/// Element i becomes start + i delta: in 64-bit integers, which wrap, or in double.
struct RangeArguments {
  void* result = nullptr;
  ElementType type = ElementType::I64;
  int64_t start = 0, delta = 1;           ///< of integers
  double real_start = 0, real_delta = 1;  ///< of floats
  int64_t count = 0;
};
cudaError_t range(const RangeArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
