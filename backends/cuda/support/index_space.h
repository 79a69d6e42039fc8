// Index spaces for kernels, from shapes.
//
// Pure arithmetic. Must not know: operators, devices.
#pragma once

#include "kernels/index_space.h"
#include "runtime/core/dtype.h"
#include "runtime/geometry/broadcast.h"
#include "runtime/geometry/merge_axes.h"

namespace librt::cuda {

static_assert(kMaxAxes == kMaxRank);

template <int kOperands>
IndexSpace<kOperands> index_space(const BroadcastPlan<kOperands>& plan) noexcept {
  IndexSpace<kOperands> space;
  space.rank = plan.rank;
  for (size_t axis = 0; axis < static_cast<size_t>(plan.rank); ++axis) {
    space.extents[axis] = plan.extent[axis];
    for (size_t k = 0; k < kOperands; ++k) space.strides[k][axis] = plan.stride[k][axis];
  }
  return space;
}

/// Makes the last axis count groups of `width` neighbours, if every operand is dense or repeated along it
/// and all other strides and the last extent are multiples of `width`; on a single axis the last group may be
/// short. Otherwise returns false and changes nothing.
template <int kOperands>
bool group_neighbours(IndexSpace<kOperands>& space, int64_t width) noexcept {
  const int last = space.rank - 1;
  if (last > 0 && space.extents[last] % width != 0) return false;
  for (const auto& strides : space.strides) {
    if (strides[last] != 0 && strides[last] != 1) return false;
    if (strides[last] == 0) continue;
    for (int axis = 0; axis < last; ++axis)
      if (strides[axis] % width != 0) return false;
  }
  space.extents[last] = (space.extents[last] + width - 1) / width;
  for (auto& strides : space.strides) strides[last] *= width;
  return true;
}

/// Groups of 16 bytes of elements where the index space allows that, else single elements.
template <int kOperands>
int choose_width(IndexSpace<kOperands>& space, DType dtype) noexcept {
  const int width = 16 / static_cast<int>(size_of(dtype));
  return group_neighbours(space, width) ? width : 1;
}

/// merge_axes(), but at least one axis remains. Merged inner extents stay within 32 bits: kernels divide by
/// them.
template <int kOperands>
void collapse(IndexSpace<kOperands>& space) noexcept {
  int64_t* strides[kOperands];
  for (int k = 0; k < kOperands; ++k) strides[k] = space.strides[k];
  space.rank = merge_axes({space.extents, static_cast<size_t>(space.rank)}, strides, 0xffffffff);
  if (space.rank > 0) return;
  space.rank = 1;
  space.extents[0] = 1;
  for (auto& stride : space.strides) stride[0] = 0;
}

}  // namespace librt::cuda
