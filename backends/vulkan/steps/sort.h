// Sorting steps: by key, equal keys by position, so that every run gives the same order.
//
// Knows: the shaders topk_*.comp. Must not know: what is sorted and why.
#pragma once

#include "backends/vulkan/kernel.h"

namespace librt::vulkan {

/// Rows of `length` elements in x [outer,length,inner], of which the first `kept` in order are wanted.
struct SortRows {
  int64_t rows = 1;
  int64_t length = 0;
  int64_t inner = 1;
  int64_t kept = 0;
  bool wide = false;     ///< 64-bit keys
  bool largest = false;  ///< the largest first
};

/// Keys and positions (u32) of the wanted entries; a row's begin `stride` after the previous row's.
struct SortedRows {
  Ref keys, positions;
  int64_t stride = 0;
};

/// Bytes of the largest buffer that add_sort allocates.
uint64_t sort_bytes(const SortRows& sort);
/// `load` makes keys of the elements of `from` (topk_load_*). length and kept are at least 1.
SortedRows add_sort(Program& program, const DevicePlan& plan, Shader load, const Ref& from,
                    const SortRows& sort);

}  // namespace librt::vulkan
