// Building blocks of attention and its gradients: GEMMs of tiles, masks, scores, the online softmax. Tiles
// are transposed, with a query row per lane, so that the softmax over keys is vertical.
#pragma once

#include "backends/cpu/simd/attention.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kMaxVectors = 4;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kMaxVectors = 2;
#else
constexpr int kBytes = 16, kMaxVectors = 2;
#endif
constexpr int kWidth = kBytes / 4;
typedef float Vector __attribute__((vector_size(kBytes), aligned(4), may_alias));

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

// --- GEMM: c[r, lane] (+)= sum over k of a(r, k) b[k, lane]

struct Matmul {
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  float* c;
  int64_t depth;
  int64_t lanes;  ///< the stride of b and c
};

template <int kVectors, int kRows, bool kAdd>
RT_INLINE void matmul_tile(const Matmul& p, int64_t row, int64_t lane) {
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
void matmul_columns(const Matmul& p, int64_t rows, int64_t lane) {
  constexpr int kRows = kVectors >= 3 ? 6 : 8;
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) matmul_tile<kVectors, kRows, kAdd>(p, row, lane);
  for (; row + 4 <= rows; row += 4) matmul_tile<kVectors, 4, kAdd>(p, row, lane);
  for (; row < rows; ++row) matmul_tile<kVectors, 1, kAdd>(p, row, lane);
}

template <bool kAdd>
void matmul(const Matmul& p, int64_t rows) {
  for (int64_t lane = 0; lane < p.lanes;) {
    const int64_t left = smaller((p.lanes - lane) / kWidth, kMaxVectors);
    if (left == 1) matmul_columns<1, kAdd>(p, rows, lane);
    if (left == 2) matmul_columns<2, kAdd>(p, rows, lane);
    if constexpr (kMaxVectors > 2) {
      if (left == 3) matmul_columns<3, kAdd>(p, rows, lane);
      if (left == 4) matmul_columns<4, kAdd>(p, rows, lane);
    }
    lane += left * kWidth;
  }
}

// --- masks

struct Keys {
  int64_t begin, end;
};

/// The range that covers the keys of all rows.
inline Keys seen_keys(const AttentionRows& task) {
  Keys keys{task.first[0], task.last[0]};
  for (int64_t i = 1; i < task.rows; ++i) {
    keys.begin = smaller(keys.begin, task.first[i]);
    keys.end = larger(keys.end, task.last[i]);
  }
  return keys;
}

inline bool has_mask(const AttentionRows& task) {
  return task.bias != nullptr || task.keep != nullptr;
}

/// A masked key stays masked, whatever its score.
RT_INLINE float with_mask(float score, float mask) {
  return pick(mask == -__builtin_inff(), mask, score + mask);
}

/// Row i of the mask over `keys`, as additive values, written with a stride.
inline void mask_row(const AttentionRows& task, int64_t i, Keys keys, float* to, int64_t stride) {
  const int64_t from = task.mask_row[i], step = task.mask_step;
  for (int64_t t = keys.begin; t < keys.end; ++t) {
    const int64_t at = from + t * step;
    to[(t - keys.begin) * stride] =
        task.keep == nullptr ? task.bias[at] : (task.keep[at] != 0 ? 0.0f : -__builtin_inff());
  }
}

/// The mask of one block of keys as [key, lane]; runs of rows with a constant stride are transposed in tiles.
inline void mask_block(const AttentionRows& task, Keys keys, float* mask, int64_t lanes) {
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

/// Masks the keys outside each row's range.
inline void hide_unseen(const AttentionRows& task, Keys keys, float* scores, int64_t lanes) {
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

inline bool is_all_seen(const AttentionRows& task, Keys keys) {
  for (int64_t i = 0; i < task.rows; ++i)
    if (task.first[i] > keys.begin || task.last[i] < keys.end) return false;
  return true;
}

/// scores = softcap tanh(scores / softcap); `grad`, if not null, is multiplied by the derivative.
inline void cap(float* scores, int64_t n, float softcap, float* grad = nullptr) {
  const float inverse = 1.0f / softcap;
  if (grad == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) scores[i] = softcap * tanh(scores[i] * inverse);
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float t = tanh(scores[i] * inverse);
    grad[i] *= 1.0f - t * t;
    scores[i] = softcap * t;
  }
}

RT_INLINE float reciprocal_or_zero(float sum) {
  return pick(sum == 0.0f, 0.0f, 1.0f / sum);
}
/// exp(score - greatest) needs a finite value to subtract even where no key was seen.
RT_INLINE float base_of(float greatest) {
  return pick(greatest == -__builtin_inff(), 0.0f, greatest);
}

// --- a block of rows: scores are [key, lane], a row in each lane

struct Tile {
  float *scores, *mask, *most, *sum, *factor;
  int64_t lanes;
};

/// Scratch for tiles, in rows of kAttentionRows floats.
struct Scratch {
  float* at;

  float* take(int64_t rows) {
    float* taken = at;
    at += rows * kAttentionRows;
    return taken;
  }
  Tile tile(int64_t rows) {
    Tile tile{};
    tile.lanes = (rows + kWidth - 1) / kWidth * kWidth;
    tile.scores = take(kAttentionKeys);
    tile.mask = take(kAttentionKeys);
    tile.most = take(1), tile.sum = take(1), tile.factor = take(1);
    for (int64_t lane = 0; lane < tile.lanes; ++lane) {
      tile.most[lane] = -__builtin_inff();
      tile.sum[lane] = 0;
    }
    return tile;
  }
};

/// packed [columns, lanes] = factor times the transposed x [rows, columns]; zeros in the remaining lanes.
inline void pack(const float* x, int64_t rows, int64_t columns, float factor, float* packed, int64_t lanes) {
  transpose(x, columns, packed, lanes, rows, columns);
  for (int64_t i = 0; i < columns; ++i) {
    float* row = packed + i * lanes;
    for (int64_t lane = rows; lane < lanes; ++lane) row[lane] = 0;
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) row[lane] *= factor;
  }
}

/// The scores of a block of keys, from queries packed with the scale. `grad` as in cap().
inline void score(const AttentionRows& task, const Tile& tile, const float* queries, Keys keys,
                  float* grad = nullptr) {
  const int64_t count = keys.end - keys.begin, lanes = tile.lanes;
  matmul<false>({task.k + keys.begin * task.d, task.d, 1, queries, tile.scores, task.d, lanes}, count);
  if (task.softcap != 0) cap(tile.scores, count * lanes, task.softcap, grad);
  if (has_mask(task)) {
    mask_block(task, keys, tile.mask, lanes);
    for (int64_t t = 0; t < count; ++t)
#pragma omp simd
      for (int64_t i = 0; i < task.rows; ++i)
        tile.scores[t * lanes + i] = with_mask(tile.scores[t * lanes + i], tile.mask[t * lanes + i]);
  }
  if (!is_all_seen(task, keys)) hide_unseen(task, keys, tile.scores, lanes);
}

/// Scores become exp(scores - maximum); sum and `results` [columns, lanes] are rescaled to the new maximum.
inline void soften(const Tile& tile, int64_t keys, float* results, int64_t columns) {
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
    base[i] = base_of(next[i]);
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
  for (int64_t c = 0; moved && c < columns; ++c) {
    float* row = results + c * lanes;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) row[i] *= tile.factor[i];
  }
}

}  // namespace librt::cpu::RT_SIMD_ISA
