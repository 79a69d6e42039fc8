#include "runtime/geometry/merge_axes.h"

#include <algorithm>

namespace librt {

int merge_axes(std::span<int64_t> extents, std::span<int64_t* const> strides, int64_t max_inner) noexcept {
  size_t rank = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t extent = extents[axis];
    if (extent == 1) continue;
    const size_t last = rank - 1;
    const auto continues = [&](const int64_t* stride) { return stride[last] == stride[axis] * extent; };
    const bool fits = rank == 1 || (rank > 1 && extents[last] <= max_inner / std::max<int64_t>(extent, 1));
    if (fits && std::ranges::all_of(strides, continues))
      extents[last] *= extent;
    else
      extents[rank++] = extent;
    for (int64_t* stride : strides) stride[rank - 1] = stride[axis];
  }
  return static_cast<int>(rank);
}

}  // namespace librt
