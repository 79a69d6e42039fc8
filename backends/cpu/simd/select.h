// Selection by condition, candidates for the k largest elements.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct SelectLoops {
  /// A superset of the k largest (or least) elements of x, as (key << 32 | position) by position; returns its
  /// size. The least keys rank first; NaN is the largest value, -0 is 0. keys and entries have room for n; n
  /// < 2^32.
  int64_t (*top_candidates)(const float* x, int64_t n, int64_t k, bool largest, uint32_t* keys,
                            uint64_t* entries);
  /// The k largest (or least) elements themselves, in order; for few of a short line. 0 < k <= n.
  void (*top_few)(const float* x, int64_t n, int64_t k, bool largest, uint32_t* keys, uint64_t* entries);
  /// y = condition ? a : b for elements of 1, 2, 4, 8 bytes; a and b advance or are one element each.
  void (*select[4])(const uint8_t* condition, const void* a, const void* b, void* y, int64_t n,
                    bool a_advances, bool b_advances);
  /// offsets[i] = selected_position(indices[i], extent) stride + i step, of indices of 4 ([0]) or 8 ([1])
  /// bytes; extent > 0.
  void (*element_offsets[2])(const void* indices, int64_t extent, int64_t stride, int64_t step,
                             int64_t* offsets, int64_t n);
};
RT_DECLARE_LOOPS(SelectLoops);

}  // namespace librt::cpu
