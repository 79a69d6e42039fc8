// Index spaces for kernels, from shapes.
//
// Pure arithmetic. Must not know: operators, devices.
#pragma once

#include <algorithm>

#include "kernels/index_space.h"
#include "runtime/core/dtype.h"
#include "runtime/geometry/broadcast.h"

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

/// Removes axes of extent 1 and merges neighbours that every operand traverses with one stride; at least one
/// axis remains. Merged inner extents stay within 32 bits: kernels divide by them.
template <int kOperands>
void collapse(IndexSpace<kOperands>& space) noexcept {
  int rank = 0;
  for (int axis = 0; axis < space.rank; ++axis) {
    if (space.extents[axis] == 1) continue;
    constexpr int64_t kMax = 0xffffffff;
    bool mergeable = rank == 1 || (rank > 1 && space.extents[rank - 1] <=
                                                   kMax / std::max<int64_t>(space.extents[axis], 1));
    for (int k = 0; mergeable && k < kOperands; ++k)
      mergeable = space.strides[k][rank - 1] == space.strides[k][axis] * space.extents[axis];
    const int64_t extent = space.extents[axis];
    if (!mergeable) space.extents[rank++] = 1;
    space.extents[rank - 1] *= extent;
    for (int k = 0; k < kOperands; ++k) space.strides[k][rank - 1] = space.strides[k][axis];
  }
  if (rank == 0) {
    rank = 1;
    space.extents[0] = 1;
    for (auto& strides : space.strides) strides[0] = 0;
  }
  space.rank = rank;
}

}  // namespace librt::cuda
