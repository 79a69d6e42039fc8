// Attention of a few query rows over the keys of one head, one block of keys after another.
//
// For each row q, over the keys t that it sees:
//   score[t] = scale q k[t] + mask[t], with a soft cap c: c tanh(scale q k[t] / c) + mask[t]
//   most = max score[t],  sum = sum exp(score[t] - most),  y = sum exp(score[t] - most) v[t] / sum
// The score matrix is never stored (Dao et al. 2022: FlashAttention): a row keeps its running maximum and
// sum, and when a block raises the maximum, the sum and the accumulated y are multiplied by exp(old most -
// new most).
//
// Gradients (Dao 2023: FlashAttention-2), with weight[t] = exp(score[t] - most) / sum and D = grad_y y:
//   grad_score[t] = weight[t] (grad_y v[t] - D) slope[t],  slope = 1, with a soft cap 1 - tanh^2
//   grad_q = scale sum over t of grad_score[t] k[t]
//   grad_k[t] = scale sum over rows of grad_score[t] q,  grad_v[t] = sum over rows of weight[t] grad_y
//
// Knows: pointers, counts, maths. Must not know: tensors, threads, where masks come from.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// At most this many rows at a time, and this many keys in one block.
inline constexpr int64_t kAttentionRows = 64;
inline constexpr int64_t kAttentionKeys = 64;

struct AttentionRows {
  const float* q = nullptr;  ///< [rows, d]
  const float* k = nullptr;  ///< [keys, d]
  const float* v = nullptr;  ///< [keys, e]
  float* y = nullptr;        ///< [rows, e]
  float* partial = nullptr;  ///< instead of y, if not null: maximum, sum, and unnormalized y, per row
  int64_t rows = 0, d = 0, e = 0;
  float scale = 1, softcap = 0;
  /// Row i sees keys [first[i], last[i]).
  const int64_t *first = nullptr, *last = nullptr;
  /// `bias` is added to the scores, or `keep` is 0 where a key is masked; element (i, t) is at mask_row[i] +
  /// t mask_step.
  const float* bias = nullptr;
  const uint8_t* keep = nullptr;
  const int64_t* mask_row = nullptr;
  int64_t mask_step = 0;
  float* scratch = nullptr;  ///< attention_scratch(d, e) floats, 64-byte aligned
};

/// Transposed queries and results, the scores of one block of keys, their mask.
constexpr int64_t attention_scratch(int64_t d, int64_t e) noexcept {
  return kAttentionRows * (d + e + 2 * kAttentionKeys + 4);
}
constexpr int64_t attention_partial(int64_t e) noexcept {
  return e + 2;
}

struct AttentionLoops {
  void (*attention)(const AttentionRows& task);
};
RT_DECLARE_LOOPS(AttentionLoops);

}  // namespace librt::cpu
