// Attention with an online softmax. Rows are columns here: scores are [key, row] and results [e, row], so
// that the softmax over keys is vertical, queries are packed once, and keys and values are read as they
// stand. A few rows (a step of generation) go over keys and values with vectors along d and e instead, at
// memory's speed.
#include "backends/cpu/simd/attention.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace rt::cpu::RT_SIMD_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kMaxVectors = 4;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kMaxVectors = 2;
#else
constexpr int kBytes = 16, kMaxVectors = 2;
#endif
constexpr int kWidth = kBytes / 4;
typedef float Vector __attribute__((vector_size(kBytes), aligned(4), may_alias));

/// Up to this many rows are not worth packing.
constexpr int64_t kFewRows = 6;

RT_INLINE Vector load(const float* x) {
  return *reinterpret_cast<const Vector*>(x);
}
RT_INLINE void store(float* x, Vector v) {
  *reinterpret_cast<Vector*>(x) = v;
}
RT_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
RT_INLINE int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// --- products: c[r, lane] (+)= sum over k of a(r, k) b[k, lane]

struct Product {
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  float* c;
  int64_t depth;
  int64_t lanes;  ///< the stride of b and c
};

template <int kVectors, int kRows, bool kAdd>
RT_INLINE void product_tile(const Product& p, int64_t row, int64_t lane) {
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n)
      sum[r][n] = kAdd ? load(p.c + (row + r) * p.lanes + lane + n * kWidth) : Vector{};
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + lane;
  for (int64_t k = 0; k < p.depth; ++k) {
    Vector wide[kVectors];
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) wide[n] = load(b + n * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float number = a[r * p.a_row];
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) sum[r][n] += number * wide[n];
    }
    a += p.a_step;
    b += p.lanes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) store(p.c + (row + r) * p.lanes + lane + n * kWidth, sum[r][n]);
}

template <int kVectors, bool kAdd>
void product_columns(const Product& p, int64_t rows, int64_t lane) {
  constexpr int kRows = kVectors >= 3 ? 6 : 8;
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) product_tile<kVectors, kRows, kAdd>(p, row, lane);
  for (; row + 4 <= rows; row += 4) product_tile<kVectors, 4, kAdd>(p, row, lane);
  for (; row < rows; ++row) product_tile<kVectors, 1, kAdd>(p, row, lane);
}

template <bool kAdd>
void product(const Product& p, int64_t rows) {
  for (int64_t lane = 0; lane < p.lanes;) {
    const int64_t left = smaller((p.lanes - lane) / kWidth, kMaxVectors);
    if (left == 1) product_columns<1, kAdd>(p, rows, lane);
    if (left == 2) product_columns<2, kAdd>(p, rows, lane);
    if constexpr (kMaxVectors > 2) {
      if (left == 3) product_columns<3, kAdd>(p, rows, lane);
      if (left == 4) product_columns<4, kAdd>(p, rows, lane);
    }
    lane += left * kWidth;
  }
}

// --- masks

struct Keys {
  int64_t begin, end;
};

/// What any row sees.
Keys seen_keys(const AttentionRows& task) {
  Keys keys{task.first[0], task.last[0]};
  for (int64_t i = 1; i < task.rows; ++i) {
    keys.begin = smaller(keys.begin, task.first[i]);
    keys.end = larger(keys.end, task.last[i]);
  }
  return keys;
}

bool has_mask(const AttentionRows& task) {
  return task.bias != nullptr || task.keep != nullptr;
}

/// A hidden key stays hidden, whatever its score.
RT_INLINE float with_mask(float score, float mask) {
  return pick(mask == -__builtin_inff(), mask, score + mask);
}

/// Row i of the mask over `keys`, as numbers to add, spread with a stride.
void mask_row(const AttentionRows& task, int64_t i, Keys keys, float* to, int64_t stride) {
  const int64_t from = task.mask_row[i], step = task.mask_step;
  for (int64_t t = keys.begin; t < keys.end; ++t) {
    const int64_t at = from + t * step;
    to[(t - keys.begin) * stride] =
        task.keep == nullptr ? task.bias[at] : (task.keep[at] != 0 ? 0.0f : -__builtin_inff());
  }
}

/// The mask of one block of keys as [key, lane]; runs of rows that lie one under the other are transposed in
/// tiles.
void mask_block(const AttentionRows& task, Keys keys, float* mask, int64_t lanes) {
  if (task.bias == nullptr || task.mask_step == 0 || task.rows < 8) {
    for (int64_t i = 0; i < task.rows; ++i) mask_row(task, i, keys, mask + i, lanes);
    return;
  }
  for (int64_t i = 0; i < task.rows;) {
    const int64_t stride = i + 1 < task.rows ? task.mask_row[i + 1] - task.mask_row[i] : 0;
    int64_t end = i + 1;
    while (end < task.rows && task.mask_row[end] - task.mask_row[end - 1] == stride) ++end;
    transpose(task.bias + task.mask_row[i] + keys.begin, stride, mask + i, lanes, end - i,
              keys.end - keys.begin);
    i = end;
  }
}

/// Hides what lies outside a row's range.
void hide_unseen(const AttentionRows& task, Keys keys, float* scores, int64_t lanes) {
  int32_t first[kAttentionRows], last[kAttentionRows];
  for (int64_t i = 0; i < lanes; ++i) {
    const int64_t row = smaller(i, task.rows - 1);
    first[i] = static_cast<int32_t>(smaller(larger(task.first[row] - keys.begin, 0), kAttentionKeys));
    last[i] = static_cast<int32_t>(smaller(larger(task.last[row] - keys.begin, 0), kAttentionKeys));
  }
  const auto count = static_cast<int32_t>(keys.end - keys.begin);
  for (int32_t t = 0; t < count; ++t) {
    float* at = scores + t * lanes;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i)
      at[i] = pick((t >= first[i]) & (t < last[i]), at[i], -__builtin_inff());
  }
}

bool is_all_seen(const AttentionRows& task, Keys keys) {
  for (int64_t i = 0; i < task.rows; ++i)
    if (task.first[i] > keys.begin || task.last[i] < keys.end) return false;
  return true;
}

void cap(float* scores, int64_t n, float softcap) {
  const float inverse = 1.0f / softcap;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) scores[i] = softcap * tanh(scores[i] * inverse);
}

// --- many rows

struct Tile {
  float *q, *y, *scores, *mask, *most, *sum, *factor;
  int64_t lanes;
};

Tile tile_of(const AttentionRows& task) {
  Tile tile{};
  tile.lanes = (task.rows + kWidth - 1) / kWidth * kWidth;
  float* at = task.scratch;
  const auto take = [&](int64_t rows) {
    float* taken = at;
    at += rows * kAttentionRows;
    return taken;
  };
  tile.q = take(task.d);
  tile.y = take(task.e);
  tile.scores = take(kAttentionKeys);
  tile.mask = take(kAttentionKeys);
  tile.most = take(1);
  tile.sum = take(1);
  tile.factor = take(1);
  return tile;
}

void pack_queries(const AttentionRows& task, const Tile& tile) {
  transpose(task.q, task.d, tile.q, tile.lanes, task.rows, task.d);
  for (int64_t i = 0; i < task.d; ++i) {
    float* row = tile.q + i * tile.lanes;
    for (int64_t lane = task.rows; lane < tile.lanes; ++lane) row[lane] = 0;
#pragma omp simd
    for (int64_t lane = 0; lane < tile.lanes; ++lane) row[lane] *= task.scale;
  }
  for (int64_t i = 0; i < task.e * tile.lanes; ++i) tile.y[i] = 0;
  for (int64_t lane = 0; lane < tile.lanes; ++lane) {
    tile.most[lane] = -__builtin_inff();
    tile.sum[lane] = 0;
  }
}

/// scores become exp(scores - maximum); sum and y are brought to the new maximum.
void soften(const AttentionRows& task, const Tile& tile, int64_t keys) {
  const int64_t lanes = tile.lanes;
  float next[kAttentionRows];
  for (int64_t i = 0; i < lanes; ++i) next[i] = tile.most[i];
  for (int64_t t = 0; t < keys; ++t) {
    const float* row = tile.scores + t * lanes;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) next[i] = pick(row[i] > next[i], row[i], next[i]);
  }
  bool moved = false;
  for (int64_t i = 0; i < lanes; ++i) moved |= next[i] != tile.most[i];
  float base[kAttentionRows];
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) {
    base[i] = pick(next[i] == -__builtin_inff(), 0.0f, next[i]);
    tile.factor[i] = exp_down(tile.most[i] - base[i]);
    tile.sum[i] *= tile.factor[i];
    tile.most[i] = next[i];
  }
  for (int64_t t = 0; t < keys; ++t) {
    float* row = tile.scores + t * lanes;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) {
      row[i] = exp_down(row[i] - base[i]);
      tile.sum[i] += row[i];
    }
  }
  for (int64_t e = 0; moved && e < task.e; ++e) {
    float* row = tile.y + e * lanes;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) row[i] *= tile.factor[i];
  }
}

void one_block(const AttentionRows& task, const Tile& tile, Keys keys) {
  const int64_t count = keys.end - keys.begin, lanes = tile.lanes;
  product<false>({task.k + keys.begin * task.d, task.d, 1, tile.q, tile.scores, task.d, lanes}, count);
  if (task.softcap != 0) cap(tile.scores, count * lanes, task.softcap);
  if (has_mask(task)) {
    mask_block(task, keys, tile.mask, lanes);
    for (int64_t t = 0; t < count; ++t)
#pragma omp simd
      for (int64_t i = 0; i < task.rows; ++i)
        tile.scores[t * lanes + i] = with_mask(tile.scores[t * lanes + i], tile.mask[t * lanes + i]);
  }
  if (!is_all_seen(task, keys)) hide_unseen(task, keys, tile.scores, lanes);
  soften(task, tile, count);
  product<true>({task.v + keys.begin * task.e, 1, task.e, tile.scores, tile.y, count, lanes}, task.e);
}

RT_INLINE float reciprocal_or_zero(float sum) {
  return pick(sum == 0.0f, 0.0f, 1.0f / sum);
}

void many_rows(const AttentionRows& task, Keys keys) {
  const Tile tile = tile_of(task);
  pack_queries(task, tile);
  for (int64_t t = keys.begin; t < keys.end; t += kAttentionKeys)
    one_block(task, tile, {t, smaller(t + kAttentionKeys, keys.end)});
  if (task.partial != nullptr) {
    const int64_t stride = attention_partial(task.e);
    for (int64_t i = 0; i < task.rows; ++i) {
      task.partial[i * stride] = tile.most[i];
      task.partial[i * stride + 1] = tile.sum[i];
    }
    transpose(tile.y, tile.lanes, task.partial + 2, stride, task.e, task.rows);
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < tile.lanes; ++i) tile.factor[i] = reciprocal_or_zero(tile.sum[i]);
  for (int64_t e = 0; e < task.e; ++e)
#pragma omp simd
    for (int64_t i = 0; i < tile.lanes; ++i) tile.y[e * tile.lanes + i] *= tile.factor[i];
  transpose(tile.y, tile.lanes, task.y, task.e, task.e, task.rows);
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
    for (int64_t t = 0; t < keys; ++t)
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) sum[n] += weights[t] * load(v + t * e + i + n * kWidth);
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

struct Running {
  float most = -__builtin_inff(), sum = 0;
};

void one_row_block(const AttentionRows& task, int64_t row, Keys keys, float* weights, float* mask, float* y,
                   Running& running) {
  const int64_t count = keys.end - keys.begin;
  dots(task.scratch + row * task.d, task.k + keys.begin * task.d, task.d, count, weights);
  if (task.softcap != 0) cap(weights, count, task.softcap);
  if (has_mask(task)) {
    mask_row(task, row, keys, mask, 1);
#pragma omp simd
    for (int64_t t = 0; t < count; ++t) weights[t] = with_mask(weights[t], mask[t]);
  }
  float most = running.most;
  for (int64_t t = 0; t < count; ++t) most = weights[t] > most ? weights[t] : most;
  const float base = most == -__builtin_inff() ? 0.0f : most;
  const float factor = exp_down(running.most - base);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t t = 0; t < count; ++t) {
    weights[t] = exp_down(weights[t] - base);
    sum += weights[t];
  }
  running.most = most;
  running.sum = running.sum * factor + sum;
  weigh(y, factor, weights, task.v + keys.begin * task.e, task.e, count);
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
      if (block.begin < block.end)
        one_row_block(task, row, block, weights, mask, results + row * task.e, running[row]);
    }
  for (int64_t row = 0; row < task.rows; ++row) {
    float* to = task.y + row * task.e;
    float factor = reciprocal_or_zero(running[row].sum);
    if (task.partial != nullptr) {
      to = task.partial + row * attention_partial(task.e);
      *to++ = running[row].most;
      *to++ = running[row].sum;
      factor = 1;
    }
    for (int64_t i = 0; i < task.e; ++i) to[i] = results[row * task.e + i] * factor;
  }
}

void attention(const AttentionRows& task) {
  const Keys keys = seen_keys(task);
  if (task.rows <= kFewRows)
    few_rows(task, keys);
  else
    many_rows(task, keys);
}

}  // namespace

void fill_attention(Simd& table) noexcept {
  table.attention = &attention;
}

}  // namespace rt::cpu::RT_SIMD_ISA
