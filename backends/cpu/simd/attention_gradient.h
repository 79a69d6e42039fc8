// Gradients of attention, one block of rows or keys at a time.
//
// Knows and must not know the same as attention.h.
#pragma once

#include "backends/cpu/simd/attention.h"

namespace librt::cpu {

/// The gradients of the same rows in two passes that share no accumulators (Dao 2023: FlashAttention-2):
/// blocks of rows compute grad_q and the statistics from which blocks of keys recompute their weights.
struct AttentionGradRows {
  AttentionRows rows;             ///< y and partial are unused
  const float* y = nullptr;       ///< [rows, e]
  const float* grad_y = nullptr;  ///< [rows, e]
  /// [rows, kAttentionStatistics]: weights are exp(score - first) second; the third is D = y grad_y.
  float* statistics = nullptr;
  float* grad_q = nullptr;  ///< [rows, d]
};
inline constexpr int64_t kAttentionStatistics = 3;

/// A block of at most kAttentionKeys keys [begin, end), which accumulates the contributions of the blocks of
/// rows in order.
struct AttentionGradKeys {
  AttentionGradRows rows;  ///< grad_q is unused
  int64_t begin = 0, end = 0;
  bool first = true, last = true;              ///< whether `rows` is the first or last block
  float *grad_k = nullptr, *grad_v = nullptr;  ///< [keys, d] and [keys, e]
};

constexpr int64_t attention_grad_scratch(int64_t d, int64_t e) noexcept {
  return kAttentionRows * (2 * d + 2 * e + 3 * kAttentionKeys + 4);
}

struct AttentionGradLoops {
  void (*attention_grad_rows)(const AttentionGradRows& task);
  void (*attention_grad_keys)(const AttentionGradKeys& task);
};
RT_DECLARE_LOOPS(AttentionGradLoops);

}  // namespace librt::cpu
