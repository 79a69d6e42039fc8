// Flat offsets of the elements or rows that gather and scatter indices address, with adjacent dimensions
// collapsed.
//
// Pure arithmetic on shapes. Must not know: dtypes, devices.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/core/shape.h"

namespace librt {

/// The position that an index selects on an axis of `extent` > 0 elements. Negative ones count from the end;
/// one outside
/// [-extent, extent) selects the nearest position: a kernel cannot report it, and must not touch other
/// memory.
constexpr int64_t selected_position(int64_t index, int64_t extent) noexcept {
  const int64_t from_start = index < 0 ? index + extent : index;
  return from_start < 0 ? 0 : from_start < extent ? from_start : extent - 1;
}

/// GatherElements and ScatterElements: the index at coordinates c addresses the data element at c with the
/// coordinate along `axis` replaced. Adjacent axes are collapsed where both shapes agree.
struct ElementPlan {
  int rank = 1;
  int axis = 0;
  std::array<int64_t, kMaxRank> indices{};  ///< extents
  std::array<int64_t, kMaxRank> data{};
  std::array<int64_t, kMaxRank> index_strides{};
  std::array<int64_t, kMaxRank> data_strides{};

  /// Where a line along `axis` starts in the indices and in the data; lines are numbered [0, lines()).
  struct Start {
    int64_t index = 0, data = 0;
  };
  int64_t lines() const noexcept {
    int64_t product = 1;
    for (int d = 0; d < rank; ++d)
      if (d != axis) product *= indices[static_cast<size_t>(d)];
    return product;
  }
  Start start_of(int64_t line) const noexcept {
    Start start;
    for (int d = rank - 1; d >= 0; --d) {
      if (d == axis) continue;
      const auto k = static_cast<size_t>(d);
      const int64_t at = line % indices[k];
      line /= indices[k];
      start.index += at * index_strides[k];
      start.data += at * data_strides[k];
    }
    return start;
  }
};

inline ElementPlan element_plan(const Shape& data, const Shape& indices, int axis) noexcept {
  ElementPlan plan;
  plan.rank = 0;
  bool merges = false;
  for (int d = 0; d < data.rank(); ++d) {
    merges = merges && d != axis && data[d] == indices[d];
    if (!merges) {
      const auto k = static_cast<size_t>(plan.rank++);
      plan.data[k] = plan.indices[k] = 1;
    }
    const auto last = static_cast<size_t>(plan.rank - 1);
    if (d == axis) plan.axis = plan.rank - 1;
    plan.data[last] *= data[d];
    plan.indices[last] *= indices[d];
    merges = d != axis;
  }
  int64_t index_stride = 1, data_stride = 1;
  for (size_t k = static_cast<size_t>(plan.rank); k-- > 0;) {
    plan.index_strides[k] = index_stride;
    plan.data_strides[k] = data_stride;
    index_stride *= plan.indices[k];
    data_stride *= plan.data[k];
  }
  return plan;
}

/// GatherND and ScatterND: tuple p addresses a row of `inner` elements, the dimensions after the indexed
/// axes.
struct TuplePlan {
  int64_t tuples = 0;
  int64_t in_batch = 1;  ///< tuples of one batch
  int length = 0;
  std::array<int64_t, kMaxRank> extent{};  ///< of the indexed axes
  int64_t rows = 0;                        ///< of the data
  int64_t inner = 1;
};

inline TuplePlan tuple_plan(const Shape& data, const Shape& indices, int batch) noexcept {
  TuplePlan plan;
  plan.tuples = indices.elements(0, indices.rank() - 1);
  plan.in_batch = indices.elements(batch, indices.rank() - 1);
  plan.length = static_cast<int>(indices.back());
  const int tail = batch + plan.length;
  for (int k = 0; k < plan.length; ++k) plan.extent[static_cast<size_t>(k)] = data[batch + k];
  plan.rows = data.elements(0, tail);
  plan.inner = data.elements(tail, data.rank());
  return plan;
}

}  // namespace librt
