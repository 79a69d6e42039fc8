// An index space with a stride for each operand along each axis: represents broadcasting, transposes, slices
// and concatenations in kernels. Plain C++.
#pragma once

#include "kernels/types.h"

namespace librt::cuda {

/// Element i of the space, in row-major order, is element sum(index[axis] * strides[k][axis]) of operand k.
/// At least one axis.
template <int kOperands>
struct IndexSpace {
  int rank = 1;
  int64_t extents[kMaxAxes] = {1};
  int64_t strides[kOperands][kMaxAxes] = {};

  int64_t elements() const noexcept {
    int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product *= extents[axis];
    return product;
  }
};

}  // namespace librt::cuda
