// Reductions over any axes, argmin and argmax: launcher arguments.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"

namespace librt::cuda {

enum class ReduceFunction : uint8_t { Sum, Max, Min, Product };

/// Merged dimensions, innermost last; strides in elements.
struct Axes {
  int rank = 0;
  int64_t extent[kMaxAxes] = {};
  int64_t stride[kMaxAxes] = {};
};

/// y[k] = the combination of x at kept offset k over all reduced offsets.
struct ReduceArguments {
  ElementType type = ElementType::F32;  ///< any numeric type
  const void* x = nullptr;
  void* y = nullptr;
  /// The reduced range is split into parts whose results are combined in order; with more than one, `partial`
  /// is scratch of reduce_partial_bytes().
  void* partial = nullptr;
  int splits = 1;
  ReduceFunction function = ReduceFunction::Sum;
  bool mean = false;
  bool inner_reduced = true;  ///< x's innermost dimension is reduced
  int64_t outputs = 0, count = 0;
  Axes kept, reduced;
};

/// The number of splits of the reduced range that fills the device; all arguments but the addresses are set.
int reduce_splits(const ReduceArguments& arguments);
/// Scratch: partial results are 8 bytes at most.
size_t reduce_partial_bytes(int64_t outputs, int splits);

/// Integers wrap and are exact; a mean of integers is the truncated quotient of the wrapped sum. Floats
/// accumulate in f32, f64 in f64.
cudaError_t reduce(const ReduceArguments& arguments, cudaStream_t stream);

/// x [outer,extent,inner] -> y i64 [outer,inner]. NaN counts as the extreme value.
struct ArgExtremeArguments {
  ElementType type = ElementType::F32;  ///< any
  const void* x = nullptr;
  int64_t* y = nullptr;
  int64_t outer = 0, extent = 0, inner = 0;
  bool smallest = false;
  bool select_last = false;
};
cudaError_t arg_extreme(const ArgExtremeArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
