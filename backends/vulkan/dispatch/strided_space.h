// Index spaces with strides: the shaders' view of broadcasting, transposes, slices, concatenations.
//
// Knows: extents and strides. Must not know: devices, operators.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/shape.h"

namespace librt::vulkan {

/// Number of axes in the shaders' parameter blocks.
inline constexpr size_t kMaxAxes = 6;

/// Extents of an index space, outermost first, and for each operand its stride along each axis.
struct StridedSpace {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;  ///< [operand][axis]

  size_t rank() const noexcept { return extents.size(); }
  int64_t elements() const noexcept {
    int64_t product = 1;
    for (int64_t extent : extents) product *= extent;
    return product;
  }
  /// merge_axes(), but at least one axis remains; most tensors need one or two.
  void collapse();
};

/// The collapsed space of `output`, with a stride of 0 where an operand broadcasts.
StridedSpace broadcast_space(const Shape& output, std::span<const Shape> operands);

/// True if every operand can be accessed in groups of `width` along the last axis: its stride there is 1 (or
/// 0 if `allow_splat`), all its other strides are multiples of `width`, and so is the last extent.
bool in_groups(const StridedSpace& space, int64_t width, bool allow_splat);

}  // namespace librt::vulkan
