// Cross-entropy of rows of logits, and its gradient.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// The share of each class in a loss: share w[c]; w may be null, then 1 each. share 0: none.
struct ClassShares {
  float share = 0;
  const float* weights = nullptr;
};

/// Of one row: maximum and log sum exp(x - maximum), both NaN where the sum is, and the sum over all classes
/// of their shares times the log probabilities.
struct RowLoss {
  float maximum = 0, log_sum = 0, smoothed = 0;
};

/// The gradient of a row is grad ((factor p - share w[c]) - (of_label at the label)), p = exp((x - maximum) -
/// log_sum); 0 if the row does not count.
struct RowSlope {
  float maximum = 0, log_sum = 0, grad = 0, factor = 0, of_label = 0;
  int64_t label = -1;  ///< negative: the row does not count
};

struct LossLoops {
  RowLoss (*cross_entropy_row)(const float* x, int64_t classes, const ClassShares& shares);
  /// y may be x.
  void (*cross_entropy_grad_row)(const float* x, float* y, int64_t classes, const RowSlope& row,
                                 const ClassShares& shares);
  /// The same down `classes` rows that are `stride` apart, for n <= kColumns neighbouring columns, each of
  /// which has an entry of `columns`.
  void (*cross_entropy_columns)(const float* x, int64_t classes, int64_t stride, int64_t n,
                                const ClassShares& shares, RowLoss* columns);
  void (*cross_entropy_grad_columns)(const float* x, float* y, int64_t classes, int64_t stride, int64_t n,
                                     const ClassShares& shares, const RowSlope* columns);
};
RT_DECLARE_LOOPS(LossLoops);

}  // namespace librt::cpu
