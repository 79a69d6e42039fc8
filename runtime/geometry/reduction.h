// A reduction over any axes; adjacent kept axes and adjacent reduced axes are merged.
//
// Pure arithmetic on shapes, shared by backends. Must not know: dtypes, devices.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/core/shape.h"
#include "runtime/geometry/merge_axes.h"

namespace librt {

/// Element (k, r) of the operand is at sum k_i kept_stride_i + sum r_j reduced_stride_j; the result is dense
/// in the kept index. Extents of 1 are dropped. Innermost last.
struct ReductionPlan {
  int kept_rank = 0, reduced_rank = 0;
  std::array<int64_t, kMaxRank> kept{}, kept_stride{}, reduced{}, reduced_stride{};
  bool inner_reduced = true;  ///< the operand's innermost dimension is reduced
  int64_t outputs = 1;        ///< elements of the result
  int64_t count = 1;          ///< elements reduced into each result

  /// Offset of element `index` of the kept (or reduced) index space.
  static int64_t offset(int64_t index, std::span<const int64_t> extents,
                        std::span<const int64_t> strides) noexcept {
    int64_t offset = 0;
    for (size_t i = extents.size(); i-- > 0;) {
      offset += index % extents[i] * strides[i];
      index /= extents[i];
    }
    return offset;
  }
  /// Offset over the first `dims` kept (reduced) dimensions.
  int64_t kept_offset(int64_t index, int dims) const noexcept {
    return offset(index, {kept.data(), static_cast<size_t>(dims)},
                  {kept_stride.data(), static_cast<size_t>(dims)});
  }
  int64_t reduced_offset(int64_t index, int dims) const noexcept {
    return offset(index, {reduced.data(), static_cast<size_t>(dims)},
                  {reduced_stride.data(), static_cast<size_t>(dims)});
  }
};

/// axes may be negative, an empty list means all; each must be in range.
inline ReductionPlan reduction_plan(const Shape& shape, std::span<const int64_t> axes) noexcept {
  std::array<bool, kMaxRank> is_reduced{};
  is_reduced.fill(axes.empty());
  for (const int64_t axis : axes)
    if (const auto normal = normalized_axis(axis, shape.rank()))
      is_reduced[static_cast<size_t>(*normal)] = true;
  const auto strides = strides_of(shape);
  ReductionPlan plan;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto axis = static_cast<size_t>(i);
    const bool reduce = is_reduced[axis];
    const auto at = static_cast<size_t>(reduce ? plan.reduced_rank++ : plan.kept_rank++);
    (reduce ? plan.reduced : plan.kept)[at] = shape[i];
    (reduce ? plan.reduced_stride : plan.kept_stride)[at] = strides[axis];
    (reduce ? plan.count : plan.outputs) *= shape[i];
    if (shape[i] != 1) plan.inner_reduced = reduce;
  }
  const auto merge = [](std::array<int64_t, kMaxRank>& extents, std::array<int64_t, kMaxRank>& stride,
                        int& rank) {
    int64_t* const operand[] = {stride.data()};
    rank = merge_axes(std::span(extents).first(static_cast<size_t>(rank)), operand);
  };
  merge(plan.kept, plan.kept_stride, plan.kept_rank);
  merge(plan.reduced, plan.reduced_stride, plan.reduced_rank);
  return plan;
}

}  // namespace librt
