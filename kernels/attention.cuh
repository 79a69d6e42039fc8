// Shared by the attention kernels: the work of each block, the keys visible to each row, masked scores, the
// online softmax.
//
// For each query row q, over its visible keys t:
//   S[t] = scale q key[t] + mask[t], with a soft cap c: c tanh(scale q key[t] / c) + mask[t]
//   m = max S[t],  l = sum exp(S[t] - m),  y = sum exp(S[t] - m) value[t] / l
// Keys come in tiles and the score matrix is never written (Dao et al.: FlashAttention, 2022): a row keeps
// its running m and l, and when a tile raises m to m', l and the accumulated y are multiplied by exp(m - m')
// (Milakov, Gimelshein: Online normalizer calculation for softmax, 2018).
//
// Gradients, with P[t] = exp(S[t] - m) / l and D = grad_y y, one number per row:
//   grad_S[t] = P[t] (grad_y value[t] - D) S'[t],  S' = 1, with a soft cap 1 - tanh^2
//   grad_query = scale sum over t of grad_S[t] key[t]
//   grad_key[t] = scale sum over rows of grad_S[t] q,  grad_value[t] = sum over rows of P[t] grad_y
#pragma once

#include "kernels/attention.h"
#include "kernels/common.cuh"
#include "kernels/ptx.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {

/// The keys visible to one row.
struct SeenKeys {
  int first, last;
};

/// Visible keys by position, for the rows of one batch.
struct KeyWindow {
  int64_t length, position;  ///< valid keys; position of query 0

  RT_DEVICE KeyWindow(const AttentionArguments& a, int batch) {
    const int64_t given = a.kv_length != nullptr ? near(a.kv_length[batch]) : a.keys;
    length = given < 0 ? 0 : given > a.keys ? a.keys : given;
    position = a.query_position != nullptr ? near(a.query_position[a.one_position ? 0 : batch])
               : a.kv_length != nullptr    ? given - a.queries
                                           : 0;
  }
  RT_DEVICE SeenKeys of_query(const AttentionArguments& a, int query) const {
    const auto bounded = [&](int64_t n) { return static_cast<int>(n < 0 ? 0 : n > length ? length : n); };
    const int64_t at = position + query;
    return {a.left < 0 ? 0 : bounded(at - near(a.left)),
            a.right < 0 ? static_cast<int>(length) : bounded(at + near(a.right) + 1)};
  }

 private:
  /// A value known only at run time, clamped so that sums of a few do not overflow.
  RT_DEVICE static int64_t near(int64_t n) {
    constexpr int64_t kFar = int64_t{1} << 61;
    return n < -kFar ? -kFar : n > kFar ? kFar : n;
  }
};

/// The work of one block: `rows` rows of one group of heads starting at `row`, columns starting at `chunk`,
/// the keys [begin, end).
struct AttentionBlock {
  int64_t pair;  ///< batch and group
  int batch, group, row, chunk, split;
  int rows;  ///< of the whole group
  int begin, end;
};

/// kBlockRows is a multiple of 32. Every thread of the block calls this.
template <int kBlockRows>
RT_DEVICE AttentionBlock attention_block(const AttentionArguments& a, const int chunks) {
  AttentionBlock b;
  b.rows = a.heads / a.groups * a.queries;
  const int blocks = (b.rows + kBlockRows - 1) / kBlockRows;
  unsigned rest = blockIdx.x;
  b.split = static_cast<int>(rest % a.splits);
  rest /= a.splits;
  b.chunk = static_cast<int>(rest % chunks);
  rest /= chunks;
  b.row = static_cast<int>(rest % blocks) * kBlockRows;
  b.pair = rest / blocks;
  b.batch = static_cast<int>(b.pair / a.groups);
  b.group = static_cast<int>(b.pair % a.groups);
  const KeyWindow window(a, b.batch);
  int first = a.keys, last = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarpSize; i < kBlockRows; i += kWarpSize)
    if (b.row + i < b.rows) {
      const SeenKeys seen = window.of_query(a, (b.row + i) % a.queries);
      if (seen.first < first) first = seen.first;
      if (seen.last > last) last = seen.last;
    }
  first = warp_reduce(first, Minimum{});
  last = warp_reduce(last, Maximum{});
  const int count = last > first ? last - first : 0, part = (count + a.splits - 1) / a.splits;
  b.begin = first + b.split * part;
  b.end = b.begin + part < first + count ? b.begin + part : first + count;
  return b;
}

/// Turns q k dot products into scores, for one row.
template <class T>
struct ScoreRow {
  SeenKeys seen;
  int64_t mask;  ///< offset of the row in the mask

  RT_DEVICE ScoreRow(const AttentionArguments& a, const AttentionBlock& b, int row) {
    const int own = row < b.rows ? row : b.rows - 1;
    const int query = own % a.queries, head = b.group * (a.heads / a.groups) + own / a.queries;
    seen = KeyWindow(a, b.batch).of_query(a, query);
    if (seen.first < b.begin) seen.first = b.begin;
    if (seen.last > b.end) seen.last = b.end;
    mask = b.batch * a.mask_strides[0] + head * a.mask_strides[1] + query * a.mask_strides[2];
  }
  /// -infinity where the key is masked for the row.
  RT_DEVICE float score(const AttentionArguments& a, float product, int key) const {
    if (key < seen.first || key >= seen.last) return -INFINITY;
    float s = product * a.scale;
    if (a.softcap != 0) s = tanhf(s / a.softcap) * a.softcap;
    if (a.mask == nullptr) return s;
    const int64_t at = mask + key * a.mask_strides[3];
    if (a.mask_type == ElementType::Bool) return static_cast<const uint8_t*>(a.mask)[at] != 0 ? s : -INFINITY;
    const float added = a.mask_type == ElementType::F32 ? static_cast<const float*>(a.mask)[at]
                                                        : to_float(static_cast<const T*>(a.mask)[at]);
    return added == -INFINITY ? added : s + added;
  }
};

/// exp(score - row_max) needs a finite subtrahend even where no key is visible.
RT_DEVICE float base_of(float row_max) {
  return row_max == -INFINITY ? 0.0f : row_max;
}
RT_DEVICE float inverse_of(float sum) {
  return sum == 0 ? 0.0f : 1.0f / sum;
}

/// The online softmax of a row whose scores are spread over the lanes of a warp.
struct RunningSoftmax {
  float row_max = -INFINITY, sum = 0;

  /// The scores of 32 more keys, one in each lane, become exp(score - row_max). Returns the factor by which
  /// what was accumulated before must be multiplied.
  RT_DEVICE float add(float& score) {
    const float next = Maximum{}(row_max, warp_reduce(score, Maximum{}));
    const float factor = expf(row_max - base_of(next));
    score = expf(score - base_of(next));
    row_max = next;
    sum = sum * factor + warp_sum(score);
    return factor;
  }
};

/// Address of a row's partial result: the maximum score, the sum, e values.
RT_DEVICE float* partial_row(const AttentionArguments& a, const AttentionBlock& b, int row) {
  return a.partial + ((b.pair * b.rows + row) * a.splits + b.split) * (a.e + 2);
}

}  // namespace librt::cuda
