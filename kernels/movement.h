// Data movement of elements of any type, by their size.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/index_space.h"

namespace librt::cuda {

/// Copies between two index spaces. Operands: from, to.
struct CopyArguments {
  IndexSpace<2> space;
  size_t unit_bytes;  ///< 1, 2, 4, 8, 16: what one step of the space moves; strides count it
  const void* from;
  void* to;
};
cudaError_t strided_copy(const CopyArguments& arguments, cudaStream_t stream);

/// Copies whose fastest axis differs between source and target, by tiles through shared memory. `outer` has
/// the other axes.
struct TransposeArguments {
  IndexSpace<2> outer;
  size_t element_bytes;               ///< 1, 2, 4, 8
  int64_t rows, columns;              ///< columns are contiguous in the source, rows in the target
  int64_t row_stride, column_stride;  ///< of a row in the source, of a column in the target
  const void* from;
  void* to;
};
cudaError_t transpose(const TransposeArguments& arguments, cudaStream_t stream);

enum class PadMode : uint8_t { Constant, Reflect, Edge, Wrap };

/// y[i] along each axis is x[i - before] where i - before is in [0, limit), else given by the mode. y is
/// dense.
struct PadArguments {
  PadMode mode;
  size_t element_bytes;
  int rank;
  int64_t extents[kMaxAxes], before[kMaxAxes], limits[kMaxAxes], strides[kMaxAxes];
  int64_t count;      ///< elements of y
  const void* x;      ///< the first element used
  const void* value;  ///< one element, or null: zero
  void* y;
};
cudaError_t pad(const PadArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
