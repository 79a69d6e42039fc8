// NumPy broadcasting, with adjacent axes merged where the strides of every operand allow it.
//
// Pure arithmetic on shapes, shared by backends. Must not know: dtypes, devices.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "runtime/core/shape.h"
#include "runtime/geometry/merge_axes.h"

namespace librt {

/// Offsets of kOperands operands over a dense result. Strides are in elements, 0 where an operand is
/// broadcast; the last dimension is the innermost one. rank is at least 1.
template <int kOperands>
struct BroadcastPlan {
  int rank = 1;
  std::array<int64_t, kMaxRank> extent{1};
  std::array<std::array<int64_t, kMaxRank>, kOperands> stride{};

  int64_t inner() const noexcept { return extent[static_cast<size_t>(rank - 1)]; }
  int64_t inner_stride(int operand) const noexcept {
    return stride[static_cast<size_t>(operand)][static_cast<size_t>(rank - 1)];
  }
  int64_t elements() const noexcept {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= extent[static_cast<size_t>(i)];
    return product;
  }
};

/// The strides of a dense operand along the `rank` axes of a result that it broadcasts to.
inline std::array<int64_t, kMaxRank> broadcast_strides(const Shape& shape, int rank) noexcept {
  std::array<int64_t, kMaxRank> strides{};
  const auto own = strides_of(shape);
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] != 1) strides[static_cast<size_t>(i + rank - shape.rank())] = own[static_cast<size_t>(i)];
  return strides;
}

/// Every shape must broadcast to `result`.
template <int kOperands>
BroadcastPlan<kOperands> broadcast_plan(const Shape& result,
                                        const std::array<Shape, kOperands>& shapes) noexcept {
  BroadcastPlan<kOperands> plan;
  std::array<int64_t*, kOperands> strides;
  for (size_t k = 0; k < kOperands; ++k) {
    plan.stride[k] = broadcast_strides(shapes[k], result.rank());
    strides[k] = plan.stride[k].data();
  }
  std::copy(result.begin(), result.end(), plan.extent.begin());
  plan.rank = merge_axes(std::span(plan.extent).first(static_cast<size_t>(result.rank())), strides);
  if (plan.rank == 0) {
    plan.rank = 1;
    plan.extent[0] = 1;
    for (auto& stride : plan.stride) stride[0] = 0;
  }
  return plan;
}

/// Calls body(first, offsets, count) for runs along the innermost dimension that cover the result's elements
/// [begin, end): `first` is the run's first result element, offsets[k] operand k's element for it.
template <int kOperands, class Body>
void for_each_run(const BroadcastPlan<kOperands>& plan, int64_t begin, int64_t end, const Body& body) {
  if (begin >= end) return;
  const auto last = static_cast<size_t>(plan.rank - 1);
  std::array<int64_t, kMaxRank> index{};
  std::array<int64_t, kOperands> offset{};
  int64_t rest = begin;
  for (size_t i = last + 1; i-- > 0;) {
    index[i] = rest % plan.extent[i];
    rest /= plan.extent[i];
    for (size_t k = 0; k < kOperands; ++k) offset[k] += index[i] * plan.stride[k][i];
  }
  for (int64_t at = begin; at < end;) {
    const int64_t left = plan.extent[last] - index[last];
    const int64_t count = left < end - at ? left : end - at;
    body(at, offset, count);
    at += count;
    for (size_t k = 0; k < kOperands; ++k) offset[k] -= index[last] * plan.stride[k][last];
    index[last] = 0;
    for (size_t i = last; i-- > 0;) {
      ++index[i];
      for (size_t k = 0; k < kOperands; ++k) offset[k] += plan.stride[k][i];
      if (index[i] < plan.extent[i]) break;
      for (size_t k = 0; k < kOperands; ++k) offset[k] -= index[i] * plan.stride[k][i];
      index[i] = 0;
    }
  }
}

}  // namespace librt
