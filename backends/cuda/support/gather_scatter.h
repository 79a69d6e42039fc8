// Shared by kernels that gather and scatter: units, sorted positions.
//
// Knows: requirements of sorting. Must not know: operators.
#pragma once

#include <algorithm>

#include "backends/cuda/kernel.h"
#include "kernels/gather.h"

namespace librt::cuda {

/// `inner` contiguous elements, moved in the largest units that fit.
struct Units {
  int bytes;
  int64_t inner;
};
inline Units units_of(DType dtype, int64_t inner) {
  Units units{static_cast<int>(size_of(dtype)), inner};
  while (units.bytes < 16 && units.inner % 2 == 0 && units.inner > 0) {
    units.bytes *= 2;
    units.inner /= 2;
  }
  return units;
}

inline bool is_wide(const NodeView& node, size_t i) {
  return node.has(i) && node.dtype(i) == DType::I64;
}

/// Scratch of one sort.
struct SortScratch {
  SortRows rows;
  size_t first = 0, second = 0;

  SortScratch(Requirements& requirements, const SortRows& sorted)
      : rows(sorted),
        first(reserve_scratch(requirements, sorted.buffer_bytes())),
        second(reserve_scratch(requirements, sorted.buffer_bytes())) {}
  cudaError_t sort(const Call& call, const void* data, SortedRows& sorted) const {
    void* const buffers[2] = {call.scratch(first), call.scratch(second)};
    return sort_rows(rows, data, buffers, sorted, call.stream);
  }
};

/// Positions are 32-bit indices and counts.
inline Status positions_fit(int64_t count, int64_t positions) {
  constexpr int64_t kLimit = (int64_t{1} << 32) - 1;
  if (count < kLimit && positions < kLimit) return {};
  return unsupported(count, " indices of ", positions, " positions, both must be below 2^32");
}

}  // namespace librt::cuda
