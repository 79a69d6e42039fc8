// Attention with an online softmax; the equations are in attention.h. Tiles are transposed: scores are [key,
// row] and results [e, row]; queries are packed once, and keys and values are read in place. A few rows (a
// decode step) are vectorized along d and e instead, at memory bandwidth.
#include "backends/cpu/simd/attention.h"

#include "backends/cpu/simd/attention_tiles.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

/// Up to this many rows are not worth packing.
constexpr int64_t kFewRows = 6;

// --- many rows

/// Writes the results [e, row] of a tile, divided by the rows' sums, or the partial results of a split.
void store_rows(const AttentionRows& task, const Tile& tile, float* y) {
  const int64_t lanes = tile.lanes;
  if (task.partial != nullptr) {
    const int64_t stride = attention_partial(task.e);
    for (int64_t i = 0; i < task.rows; ++i) {
      task.partial[i * stride] = tile.most[i];
      task.partial[i * stride + 1] = tile.sum[i];
    }
    transpose(y, lanes, task.partial + 2, stride, task.e, task.rows);
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) tile.factor[i] = reciprocal_or_zero(tile.sum[i]);
  for (int64_t e = 0; e < task.e; ++e)
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) y[e * lanes + i] *= tile.factor[i];
  transpose(y, lanes, task.y, task.e, task.e, task.rows);
}

void many_rows(const AttentionRows& task, Keys keys) {
  Scratch scratch{task.scratch};
  float *queries = scratch.take(task.d), *y = scratch.take(task.e);
  const Tile tile = scratch.tile(task.rows);
  pack(task.q, task.rows, task.d, task.scale, queries, tile.lanes);
  for (int64_t i = 0; i < task.e * tile.lanes; ++i) y[i] = 0;
  for (int64_t t = keys.begin; t < keys.end; t += kAttentionKeys) {
    const Keys block{t, smaller(t + kAttentionKeys, keys.end)};
    const int64_t count = block.end - block.begin;
    score(task, tile, queries, block);
    soften(tile, count, y, task.e);
    matmul<true>({task.v + t * task.e, 1, task.e, tile.scores, y, count, tile.lanes}, task.e);
  }
  store_rows(task, tile, y);
}

// --- few rows

RT_INLINE float sum_of(Vector v) {
  float sum = 0;
  for (int i = 0; i < kWidth; ++i) sum += v[i];
  return sum;
}

/// scores[t] = q k[t] for four neighbouring keys at a time.
void dots(const float* q, const float* k, int64_t d, int64_t keys, float* scores) {
  constexpr int kKeys = 4;
  int64_t t = 0;
  for (; t + kKeys <= keys; t += kKeys, k += kKeys * d) {
    Vector sum[kKeys] = {};
    int64_t i = 0;
    for (; i + kWidth <= d; i += kWidth) {
      const Vector part = load(q + i);
#pragma GCC unroll 4
      for (int j = 0; j < kKeys; ++j) sum[j] += part * load(k + j * d + i);
    }
    float total[kKeys];
#pragma GCC unroll 4
    for (int j = 0; j < kKeys; ++j) total[j] = sum_of(sum[j]);
    for (; i < d; ++i)
      for (int j = 0; j < kKeys; ++j) total[j] += q[i] * k[j * d + i];
    for (int j = 0; j < kKeys; ++j) scores[t + j] = total[j];
  }
  for (; t < keys; ++t, k += d) {
    float total = 0;
    for (int64_t i = 0; i < d; ++i) total += q[i] * k[i];
    scores[t] = total;
  }
}

/// y = factor y + sum of weights[t] v[t]
void weigh(float* y, float factor, const float* weights, const float* v, int64_t e, int64_t keys) {
  constexpr int kVectors = 4;
  int64_t i = 0;
  for (; i + kVectors * kWidth <= e; i += kVectors * kWidth) {
    Vector sum[kVectors];
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) sum[n] = factor * load(y + i + n * kWidth);
    for (int64_t t = 0; t < keys; ++t) {
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) sum[n] += weights[t] * load(v + t * e + i + n * kWidth);
    }
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) store(y + i + n * kWidth, sum[n]);
  }
  for (; i + kWidth <= e; i += kWidth) {
    Vector sum = factor * load(y + i);
    for (int64_t t = 0; t < keys; ++t) sum += weights[t] * load(v + t * e + i);
    store(y + i, sum);
  }
  for (; i < e; ++i) {
    float sum = factor * y[i];
    for (int64_t t = 0; t < keys; ++t) sum += weights[t] * v[t * e + i];
    y[i] = sum;
  }
}

/// The online softmax of one row.
struct Running {
  float most = -__builtin_inff(), sum = 0;

  /// Scores become exp(score - most). Returns the factor for what was accumulated before.
  float soften(float* scores, int64_t count) {
    float next = most;
    for (int64_t t = 0; t < count; ++t) next = scores[t] > next ? scores[t] : next;
    const float base = base_of(next);
    const float factor = exp_down(most - base);
    float added = 0;
#pragma omp simd reduction(+ : added)
    for (int64_t t = 0; t < count; ++t) {
      scores[t] = exp_down(scores[t] - base);
      added += scores[t];
    }
    most = next;
    sum = sum * factor + added;
    return factor;
  }
};

/// The scores of one row, whose query in the scratch has the scale already.
void score_row(const AttentionRows& task, int64_t row, Keys keys, float* scores, float* mask) {
  const int64_t count = keys.end - keys.begin;
  dots(task.scratch + row * task.d, task.k + keys.begin * task.d, task.d, count, scores);
  if (task.softcap != 0) cap(scores, count, task.softcap);
  if (!has_mask(task)) return;
  mask_row(task, row, keys, mask, 1);
#pragma omp simd
  for (int64_t t = 0; t < count; ++t) scores[t] = with_mask(scores[t], mask[t]);
}

/// Writes one row's result, divided by its sum, or the partial result of a split.
void store_row(const AttentionRows& task, int64_t row, const Running& running, const float* y) {
  float* to = task.y + row * task.e;
  float factor = reciprocal_or_zero(running.sum);
  if (task.partial != nullptr) {
    to = task.partial + row * attention_partial(task.e);
    *to++ = running.most;
    *to++ = running.sum;
    factor = 1;
  }
  for (int64_t i = 0; i < task.e; ++i) to[i] = y[i] * factor;
}

void few_rows(const AttentionRows& task, Keys keys) {
  float* results = task.scratch + kFewRows * task.d;
  float* weights = results + kFewRows * task.e;
  float* mask = weights + kAttentionKeys;
  Running running[kFewRows];
#pragma omp simd
  for (int64_t i = 0; i < task.rows * task.d; ++i) task.scratch[i] = task.q[i] * task.scale;
  for (int64_t i = 0; i < task.rows * task.e; ++i) results[i] = 0;
  for (int64_t t = keys.begin; t < keys.end; t += kAttentionKeys)
    for (int64_t row = 0; row < task.rows; ++row) {
      const Keys block{larger(t, task.first[row]),
                       smaller(smaller(t + kAttentionKeys, keys.end), task.last[row])};
      if (block.begin >= block.end) continue;
      const int64_t count = block.end - block.begin;
      score_row(task, row, block, weights, mask);
      const float factor = running[row].soften(weights, count);
      weigh(results + row * task.e, factor, weights, task.v + block.begin * task.e, task.e, count);
    }
  for (int64_t row = 0; row < task.rows; ++row) store_row(task, row, running[row], results + row * task.e);
}

void attention(const AttentionRows& task) {
  const Keys keys = seen_keys(task);
  if (task.rows <= kFewRows)
    few_rows(task, keys);
  else
    many_rows(task, keys);
}

constexpr AttentionLoops make_loops() {
  AttentionLoops table{};
  table.attention = &attention;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(AttentionLoops);
