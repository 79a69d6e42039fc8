// Of all gradients together: their norm, and whether every element is finite.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace librt::cuda {

struct GradientsArguments {
  /// One of the gradients: f32, f16, bf16.
  struct Gradient {
    const void* values;
    int64_t count;
    ElementType type;
  };
  std::span<const Gradient> gradients;
  float* partial = nullptr;  ///< memory for partial_sums() of all of them
  float* norm = nullptr;     ///< square root of the sum of squares; null: not asked for
  bool* finite = nullptr;    ///< no element is infinite or NaN; null: not asked for
};

/// Sums that a gradient is divided into.
int64_t partial_sums(int64_t count);

/// A launch for each 180 gradients, and one for the partial sums. One of the results is asked for.
cudaError_t over_gradients(const GradientsArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
