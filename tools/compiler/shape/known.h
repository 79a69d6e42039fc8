// What is proven of a value while a graph is built: its extents as expressions, and of small integer values
// the elements.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/shape.h"
#include "tools/compiler/shape/extent_table.h"

namespace librt::compiler {

/// Shape operands have no more entries; larger values are not followed.
inline constexpr int64_t kMostElements = 64;

/// Whether the shape, which may have extents that are only assumed, of any size, has at most so many
/// elements.
inline bool has_at_most(const Shape& shape, int64_t most) noexcept {
  const auto count = shape.checked_elements();
  return count && *count <= most;
}

struct Known {
  std::vector<Extent> dims;
  /// Row-major, if has_elements: of an integer or boolean value with static extents and at most kMostElements
  /// elements. Those that are not known are Extent::unknown().
  std::vector<Extent> elements;
  bool has_elements = false;
  /// The value's bytes if they do not depend on the inputs; they live as long as the builder's value.
  const std::byte* bytes = nullptr;
  DType dtype = DType::F32;  ///< of bytes

  bool is_static() const noexcept {
    for (const Extent& extent : dims)
      if (!extent.is_constant()) return false;
    return true;
  }
};

}  // namespace librt::compiler
