// Reductions of a row, and positions of its extremes.
#pragma once

#include "backends/cpu/simd/rows.h"

namespace librt::cpu {

struct ReduceLoops {
  /// The reduction of x[0..n); the neutral element for n = 0.
  float (*reduce_row[static_cast<int>(ReduceFunction::Count)])(const float* x, int64_t n);
  /// The position of the least [0] or largest [1] element, of equal ones the first [0] or the last [1]; NaN
  /// counts as either, and equals NaN. 0 < n < 2^31.
  int64_t (*arg_row[2][2])(const float* x, int64_t n);
  /// The same down `extent` rows that are `stride` apart, for n <= kColumns neighbouring columns.
  void (*arg_columns[2][2])(const float* x, int64_t* y, int64_t extent, int64_t stride, int64_t n);
};
RT_DECLARE_LOOPS(ReduceLoops);

}  // namespace librt::cpu
