// Operands larger than a device binds at once: an index space in parts, each with the windows it needs.
//
// Knows: ranges of bytes and index spaces. Must not know: operators, shaders.
#pragma once

#include <span>
#include <vector>

#include "backends/vulkan/kernel.h"

namespace librt::vulkan {

/// How a step accesses an operand.
struct StridedOperand {
  Ref ref;
  std::vector<int64_t> strides;  ///< bytes, one for each axis of the index space
  int64_t element = 4;           ///< bytes at one index
  int64_t from = 0;              ///< bytes before the element at index 0
};

struct Part {
  std::vector<int64_t> first, count;  ///< by axis

  int64_t elements() const noexcept;
};

/// The range to bind for a part.
struct Window {
  Ref ref;
  int64_t first = 0;  ///< offset in it of the element at the part's first index, in elements
  uint64_t bytes() const noexcept { return ref.bytes; }
};

/// Parts of an index space, small enough that all their windows can be bound. Where an axis is cut, the parts
/// with lower indices come first and begin at a multiple of its entry in `multiples` (empty: 1 each).
std::vector<Part> parts_of(const VulkanDevice& device, std::span<const int64_t> extents,
                           std::span<const int64_t> multiples, std::span<const StridedOperand> operands);

Window window_of(const VulkanDevice& device, const StridedOperand& operand, const Part& part);

/// A range of rows of operands stored row by row.
struct Rows {
  int64_t first, count;
  bool last;
};

/// Ranges that cover `rows` rows, each at most as long as can be bound and aligned for a binding; row_bytes:
/// of each operand, not zero. Empty if even the fewest rows are too many.
std::vector<Rows> ranges_of_rows(const VulkanDevice& device, int64_t rows,
                                 std::span<const int64_t> row_bytes);
/// Ok if there are such ranges.
Status rows_fit(const Device& device, int64_t rows, std::span<const int64_t> row_bytes);
/// The part of an input or output in a range; the last one extends to the operand's end.
Ref rows_of(Ref whole, const Rows& range, int64_t row_bytes);

}  // namespace librt::vulkan
