// Uniform and normal random numbers: element i depends on seed, counter and i alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

struct RandomArguments {
  void* result = nullptr;
  const int64_t* counter = nullptr;  ///< on the device; null for 0
  ElementType type = ElementType::F32;
  bool normal = false;
  uint64_t seed = 0;
  float first = 0, second = 1;  ///< first + second times the random value: low and range, or mean and scale
  int64_t count = 0;
};

/// f32, f16, bf16, f64.
cudaError_t random(const RandomArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
