// Walking an IndexSpace on the device.
#pragma once

#include "kernels/index_space.h"
#include "kernels/port.cuh"

namespace librt::cuda {

template <int kOperands>
struct Offsets {
  int64_t at[kOperands];
  RT_DEVICE int64_t operator[](int operand) const { return at[operand]; }
};

namespace detail {
template <class Index, int kOperands>
RT_DEVICE Offsets<kOperands> offsets_of(const IndexSpace<kOperands>& space, Index index) {
  Offsets<kOperands> offsets{};
  RT_UNROLL
  for (int axis = kMaxAxes - 1; axis >= 0; --axis) {
    if (axis >= space.rank) continue;
    Index position = index;
    if (axis > 0) {
      const Index extent = static_cast<Index>(space.extents[axis]);
      index = position / extent;
      position -= index * extent;
    }
    RT_UNROLL
    for (int k = 0; k < kOperands; ++k)
      offsets.at[k] += static_cast<int64_t>(position) * space.strides[k][axis];
  }
  return offsets;
}
}  // namespace detail

/// Each operand's element offset for element `index` of the space. Divides in 32 bits where the index fits.
template <int kOperands>
RT_DEVICE Offsets<kOperands> offsets_of(const IndexSpace<kOperands>& space, int64_t index) {
  if (index <= 0xffffffffll) return detail::offsets_of<uint32_t>(space, static_cast<uint32_t>(index));
  return detail::offsets_of<uint64_t>(space, static_cast<uint64_t>(index));
}

}  // namespace librt::cuda
