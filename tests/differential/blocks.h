// Shared by the block files.
#pragma once

#include <limits>

#include "tests/differential/generator.h"

namespace librt::test {

inline constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

std::vector<Block> window_blocks();    ///< slices, pads, pools, convolutions, unfolding
std::vector<Block> movement_blocks();  ///< reshapes, concats, gathers, expand, tile, resize, split
std::vector<Block> value_blocks();     ///< arithmetic, reductions, TopK, NonZero, control

/// Whether all axes but `but` have equal extents at every sample.
inline bool same_dims(const Item& a, const Item& b, size_t but = ~size_t{0}) {
  if (a.rank() != b.rank()) return false;
  for (size_t sample = 0; sample < a.dims.size(); ++sample)
    for (size_t axis = 0; axis < a.axes(); ++axis)
      if (axis != but && a.dims[sample][axis] != b.dims[sample][axis]) return false;
  return true;
}

}  // namespace librt::test
