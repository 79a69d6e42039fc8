// Elementwise functions of two operands, and selection, with broadcasting.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/index_space.h"
#include "runtime/core/binary_function.h"

namespace librt::cuda {

/// Operands of the space: a, b; the result is dense. With `width` > 1 the last axis counts groups of that
/// many adjacent elements, and each operand's stride along it is `width` or 0.
struct BroadcastArguments {
  IndexSpace<2> space;
  int width;      ///< 1, or the number of elements in 16 bytes
  int64_t count;  ///< elements of the result
  const void* a;
  const void* b;
  void* y;
};
cudaError_t binary(BinaryFunction function, ElementType type, const BroadcastArguments& arguments,
                   cudaStream_t stream);
/// y is boolean.
cudaError_t compare(CompareFunction function, ElementType type, const BroadcastArguments& arguments,
                    cudaStream_t stream);

/// y = condition ? a : b. Operands of the space: condition, a, b.
struct WhereArguments {
  IndexSpace<3> space;
  int width;  ///< 1, or the number of elements of the result in 16 bytes
  int64_t count;
  size_t element_bytes;
  const void* condition;
  const void* a;
  const void* b;
  void* y;
};
cudaError_t where(const WhereArguments& x, cudaStream_t stream);

}  // namespace librt::cuda
