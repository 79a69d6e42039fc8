// Fewer axes for an index space that several operands traverse with strides.
//
// Pure arithmetic. Must not know: shapes of operators, dtypes, devices. broadcast.h and reduction.h use it,
// and the backends for their index spaces.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace librt {

/// Element (i_0, ..., i_{rank-1}) of the space, outermost axis first, is element sum i_a strides[k][a] of
/// operand k. Removes axes of extent 1, and merges an axis into the one before it where for every operand
///   strides[k][a - 1] == extents[a] strides[k][a].
/// The elements keep their order. Works in place and returns the new rank, 0 if all extents are 1.
/// An axis after the first is merged no further than `max_inner`: for kernels that divide by these extents.
int merge_axes(std::span<int64_t> extents, std::span<int64_t* const> strides,
               int64_t max_inner = std::numeric_limits<int64_t>::max()) noexcept;

}  // namespace librt
