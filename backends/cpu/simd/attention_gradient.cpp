// Gradients of attention without materializing the score matrix; the equations are in attention.h.
// Blocks of rows have a row in each lane and iterate over the keys with an online softmax, as attention does.
// Blocks of keys have a key in each lane and iterate over the rows, whose maxima and sums are known by then.
#include "backends/cpu/simd/attention_gradient.h"

#include "backends/cpu/simd/attention_tiles.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

// --- a row in each lane

/// dots[lane] = D = y grad_y
void multiply_results(const AttentionGradRows& task, float* dots, int64_t lanes) {
  for (int64_t lane = 0; lane < lanes; ++lane) dots[lane] = 0;
  for (int64_t i = 0; i < task.rows.rows; ++i) {
    const float *y = task.y + i * task.rows.e, *grad_y = task.grad_y + i * task.rows.e;
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t e = 0; e < task.rows.e; ++e) dot += y[e] * grad_y[e];
    dots[i] = dot;
  }
}

/// grad [key, lane] = grad_y v - D of a block of keys
void multiply_values(const AttentionRows& rows, Keys keys, const float* grad_y, const float* dots,
                     float* grad, int64_t lanes) {
  const int64_t count = keys.end - keys.begin;
  matmul<false>({rows.v + keys.begin * rows.e, rows.e, 1, grad_y, grad, rows.e, lanes}, count);
  for (int64_t k = 0; k < count; ++k)
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) grad[k * lanes + i] -= dots[i];
}

/// Writes the statistics of the rows and their grad_q, scaled.
void store_rows(const AttentionGradRows& task, const Tile& tile, const float* dots, float* grad_q) {
  const AttentionRows& rows = task.rows;
  const int64_t lanes = tile.lanes;
  for (int64_t i = 0; i < lanes; ++i) tile.factor[i] = reciprocal_or_zero(tile.sum[i]);
  for (int64_t i = 0; i < rows.rows; ++i) {
    float* own = task.statistics + i * kAttentionStatistics;
    own[0] = base_of(tile.most[i]);
    own[1] = tile.factor[i];
    own[2] = dots[i];
  }
  for (int64_t d = 0; d < rows.d; ++d)
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) grad_q[d * lanes + i] *= tile.factor[i] * rows.scale;
  transpose(grad_q, lanes, task.grad_q, rows.d, rows.d, rows.rows);
}

void attention_grad_rows(const AttentionGradRows& task) {
  const AttentionRows& rows = task.rows;
  const Keys keys = seen_keys(rows);
  Scratch scratch{rows.scratch};
  float *queries = scratch.take(rows.d), *grad_y = scratch.take(rows.e), *grad_q = scratch.take(rows.d);
  float *grad = scratch.take(kAttentionKeys), *dots = scratch.take(1);
  const Tile tile = scratch.tile(rows.rows);
  const int64_t lanes = tile.lanes;
  pack(rows.q, rows.rows, rows.d, rows.scale, queries, lanes);
  pack(task.grad_y, rows.rows, rows.e, 1.0f, grad_y, lanes);
  multiply_results(task, dots, lanes);
  for (int64_t i = 0; i < rows.d * lanes; ++i) grad_q[i] = 0;

  for (int64_t t = keys.begin; t < keys.end; t += kAttentionKeys) {
    const Keys block{t, smaller(t + kAttentionKeys, keys.end)};
    const int64_t count = block.end - block.begin;
    multiply_values(rows, block, grad_y, dots, grad, lanes);
    score(rows, tile, queries, block, grad);
    soften(tile, count, grad_q, rows.d);
#pragma omp simd
    for (int64_t i = 0; i < count * lanes; ++i) grad[i] *= tile.scores[i];
    matmul<true>({rows.k + t * rows.d, 1, rows.d, grad, grad_q, count, lanes}, rows.d);
  }

  store_rows(task, tile, dots, grad_q);
}

// --- a key in each lane

/// Turns one row's dot products with a block of keys into weights and the gradients of scores.
void weigh_row(const AttentionGradKeys& task, int64_t row, float* scores, float* grad, float* mask,
               int64_t lanes) {
  const AttentionRows& rows = task.rows.rows;
  const float* own = task.rows.statistics + row * kAttentionStatistics;
  const float base = own[0], inverse = own[1], dot = own[2];
#pragma omp simd
  for (int64_t t = 0; t < lanes; ++t) grad[t] -= dot;
  if (rows.softcap != 0) cap(scores, lanes, rows.softcap, grad);
  const int64_t count = task.end - task.begin;
  if (has_mask(rows)) {
    mask_row(rows, row, {task.begin, task.end}, mask, 1);
#pragma omp simd
    for (int64_t t = 0; t < count; ++t) scores[t] = with_mask(scores[t], mask[t]);
  }
  const auto first = static_cast<int32_t>(smaller(larger(rows.first[row] - task.begin, 0), count));
  const auto last = static_cast<int32_t>(smaller(larger(rows.last[row] - task.begin, 0), count));
  const auto end = static_cast<int32_t>(lanes);
#pragma omp simd
  for (int32_t t = 0; t < end; ++t) {
    const float weight = exp_down(scores[t] - base) * inverse;
    scores[t] = pick((t >= first) & (t < last), weight, 0.0f);
    grad[t] *= scores[t];
  }
}

void attention_grad_keys(const AttentionGradKeys& task) {
  const AttentionRows& rows = task.rows.rows;
  const int64_t count = task.end - task.begin, lanes = (count + kWidth - 1) / kWidth * kWidth;
  Scratch scratch{rows.scratch};
  float *keys = scratch.take(rows.d), *values = scratch.take(rows.e);
  float *grad_k = scratch.take(rows.d), *grad_v = scratch.take(rows.e);
  float *scores = scratch.take(kAttentionKeys), *grad = scratch.take(kAttentionKeys), *mask = scratch.take(1);
  if (task.first) {
    pack(rows.k + task.begin * rows.d, count, rows.d, rows.scale, keys, lanes);
    pack(rows.v + task.begin * rows.e, count, rows.e, 1.0f, values, lanes);
    for (int64_t i = 0; i < rows.d * lanes; ++i) grad_k[i] = 0;
    for (int64_t i = 0; i < rows.e * lanes; ++i) grad_v[i] = 0;
  }
  const Keys seen = seen_keys(rows);
  if (seen.begin < task.end && seen.end > task.begin) {
    matmul<false>({rows.q, rows.d, 1, keys, scores, rows.d, lanes}, rows.rows);
    matmul<false>({task.rows.grad_y, rows.e, 1, values, grad, rows.e, lanes}, rows.rows);
    for (int64_t i = 0; i < rows.rows; ++i)
      weigh_row(task, i, scores + i * lanes, grad + i * lanes, mask, lanes);
    matmul<true>({task.rows.grad_y, 1, rows.e, scores, grad_v, rows.rows, lanes}, rows.e);
    matmul<true>({rows.q, 1, rows.d, grad, grad_k, rows.rows, lanes}, rows.d);
  }
  if (!task.last) return;
#pragma omp simd
  for (int64_t i = 0; i < rows.d * lanes; ++i) grad_k[i] *= rows.scale;
  transpose(grad_k, lanes, task.grad_k + task.begin * rows.d, rows.d, rows.d, count);
  transpose(grad_v, lanes, task.grad_v + task.begin * rows.e, rows.e, rows.e, count);
}

constexpr AttentionGradLoops make_loops() {
  AttentionGradLoops table{};
  table.attention_grad_rows = &attention_grad_rows;
  table.attention_grad_keys = &attention_grad_keys;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(AttentionGradLoops);
