// Gradients of attention without materializing the score matrix; the equations are in attention.cuh. Two
// kernels, no atomics: blocks of rows pass over their visible keys twice, first for each row's maximum score
// and sum, which they store, then for grad_query; blocks of keys pass over the rows for grad_key and
// grad_value. Extra memory: three scalars per row.
#include "kernels/attention_gradient.h"

#include <algorithm>

#include "kernels/attention.cuh"
#include "kernels/attention_tiles.cuh"

namespace librt::cuda {
namespace {

/// Per-row statistics used by the backward passes.
struct RowStatistics {
  float base = 0, inverse_sum = 0;  ///< of exp(score - base); 0: no key is visible to the row
  float dot = 0;                    ///< D = grad_y y

  RT_DEVICE float weight(float score) const { return expf(score - base) * inverse_sum; }
};

/// grad_s / P of one score before scaling.
RT_DEVICE float slope_of(const AttentionArguments& a, float product) {
  if (a.softcap == 0) return 1;
  const float t = tanhf(product * a.scale / a.softcap);
  return 1 - t * t;
}

/// D = grad_y y of one row, summed by a warp.
template <class T>
RT_DEVICE float dot_of(const T* grad_y, const T* y, int row, int rows, int width, int lane) {
  float dot = 0;
  if (row < rows)
    for (int c = lane; c < width; c += kWarpSize) {
      const int64_t offset = static_cast<int64_t>(row) * width + c;
      dot += to_float(grad_y[offset]) * to_float(y[offset]);
    }
  return warp_sum(dot);
}

/// The addresses of the operands of one batch and group.
template <class T>
struct GradOperands {
  const T *query, *key, *value, *y, *grad_y;

  RT_DEVICE GradOperands(const AttentionGradArguments& g, const AttentionBlock& b) {
    const AttentionArguments& a = g.attention;
    query = static_cast<const T*>(a.query) + b.pair * b.rows * a.d;
    key = static_cast<const T*>(a.key) + b.pair * a.keys * a.d;
    value = static_cast<const T*>(a.value) + b.pair * a.keys * a.e;
    y = static_cast<const T*>(a.y) + b.pair * b.rows * a.e;
    grad_y = static_cast<const T*>(g.grad_y) + b.pair * b.rows * a.e;
  }
};

/// The statistics of this warp's rows, from a first pass over the keys; stored for grad_key_value_kernel.
template <class T>
RT_DEVICE void row_statistics(RowStatistics (&row)[kTileWarpRows], AttentionTiles& tiles, const TileLane& at,
                              const AttentionGradArguments& g, const AttentionBlock& b,
                              const GradOperands<T>& x) {
  const AttentionArguments& a = g.attention;
  RunningSoftmax running[kTileWarpRows];
  for (int first = b.begin; first < b.end; first += kTileRows) {
    float score[kTileWarpRows] = {};
    multiply_tiles(score, tiles, at, TileRows<T>{x.query, b.row, b.rows}, TileRows<T>{x.key, first, b.end},
                   a.d);
    RT_UNROLL
    for (int i = 0; i < kTileWarpRows; ++i) {
      float own = ScoreRow<T>(a, b, b.row + at.row + i).score(a, score[i], first + at.lane);
      running[i].add(own);
    }
  }
  RT_UNROLL
  for (int i = 0; i < kTileWarpRows; ++i) {
    const int own = b.row + at.row + i;
    row[i] = {base_of(running[i].row_max), inverse_of(running[i].sum),
              dot_of(x.grad_y, x.y, own, b.rows, a.e, at.lane)};
    if (own < b.rows && at.lane == 0 && b.chunk == 0)
      reinterpret_cast<RowStatistics*>(g.statistics)[b.pair * b.rows + own] = row[i];
  }
}

template <class T>
__global__ void __launch_bounds__(kTileThreads, 2) grad_query_kernel(AttentionGradArguments g) {
  const AttentionArguments& a = g.attention;
  auto& tiles = *dynamic_shared<AttentionTiles>();
  const AttentionBlock b = attention_block<kTileRows>(a, a.d == 0 ? 1 : column_chunks(a.d));
  const TileLane at;
  const GradOperands<T> x(g, b);
  RowStatistics row[kTileWarpRows];
  row_statistics(row, tiles, at, g, b, x);

  float result[kTileWarpRows][kTileLaneColumns] = {};
  for (int first = b.begin; first < b.end; first += kTileRows) {
    float score[kTileWarpRows] = {}, grad[kTileWarpRows] = {};
    multiply_tiles(score, tiles, at, TileRows<T>{x.query, b.row, b.rows}, TileRows<T>{x.key, first, b.end},
                   a.d);
    multiply_tiles(grad, tiles, at, TileRows<T>{x.grad_y, b.row, b.rows}, TileRows<T>{x.value, first, b.end},
                   a.e);
    RT_UNROLL
    for (int i = 0; i < kTileWarpRows; ++i) {
      const float own = ScoreRow<T>(a, b, b.row + at.row + i).score(a, score[i], first + at.lane);
      tiles.weight[at.row + i][at.lane] = row[i].weight(own) * (grad[i] - row[i].dot) * slope_of(a, score[i]);
    }
    add_weighted(result, tiles, at, TileRows<T>{x.key, first, b.end}, a.d, b.chunk);
  }
  store_rows(result, static_cast<T*>(g.grad_query) + b.pair * b.rows * a.d, at, b.row, b.rows, a.d, b.chunk,
             a.scale);
}

/// The work of a block of grad_key_value_kernel: the keys [begin, end) against all rows.
RT_DEVICE AttentionBlock key_block(const AttentionArguments& a) {
  const int chunks = column_chunks(a.d > a.e ? a.d : a.e), blocks = (a.keys + kTileRows - 1) / kTileRows;
  AttentionBlock b;
  b.rows = a.heads / a.groups * a.queries;
  b.chunk = static_cast<int>(blockIdx.x % chunks);
  b.begin = static_cast<int>(blockIdx.x / chunks % blocks) * kTileRows;
  b.end = b.begin + kTileRows < a.keys ? b.begin + kTileRows : a.keys;
  b.pair = blockIdx.x / chunks / blocks;
  b.batch = static_cast<int>(b.pair / a.groups);
  b.group = static_cast<int>(b.pair % a.groups);
  return b;
}

template <class T>
__global__ void __launch_bounds__(kTileThreads, 2) grad_key_value_kernel(AttentionGradArguments g) {
  const AttentionArguments& a = g.attention;
  auto& tiles = *dynamic_shared<AttentionTiles>();
  const TileLane at;
  const AttentionBlock b = key_block(a);
  const GradOperands<T> x(g, b);

  float grad_key[kTileWarpRows][kTileLaneColumns] = {}, grad_value[kTileWarpRows][kTileLaneColumns] = {};
  for (int from = 0; from < b.rows; from += kTileRows) {
    const int row = from + at.lane;
    const ScoreRow<T> scores(a, b, row);
    const bool sees = row < b.rows && scores.seen.first < scores.seen.last;
    if (__ballot_sync(kFullMask, sees) == 0) continue;  // uniform over the warps: they have the same rows
    const RowStatistics own =
        row < b.rows ? reinterpret_cast<const RowStatistics*>(g.statistics)[b.pair * b.rows + row]
                     : RowStatistics{};
    float score[kTileWarpRows] = {}, grad[kTileWarpRows] = {};
    multiply_tiles(score, tiles, at, TileRows<T>{x.key, b.begin, b.end}, TileRows<T>{x.query, from, b.rows},
                   a.d);
    multiply_tiles(grad, tiles, at, TileRows<T>{x.value, b.begin, b.end}, TileRows<T>{x.grad_y, from, b.rows},
                   a.e);
    RT_UNROLL
    for (int i = 0; i < kTileWarpRows; ++i) {
      const float weight = sees ? own.weight(scores.score(a, score[i], b.begin + at.row + i)) : 0.0f;
      tiles.weight[at.row + i][at.lane] = weight;
      grad[i] = weight * (grad[i] - own.dot) * slope_of(a, score[i]);
    }
    add_weighted(grad_value, tiles, at, TileRows<T>{x.grad_y, from, b.rows}, a.e, b.chunk);
    RT_UNROLL
    for (int i = 0; i < kTileWarpRows; ++i) tiles.weight[at.row + i][at.lane] = grad[i];
    add_weighted(grad_key, tiles, at, TileRows<T>{x.query, from, b.rows}, a.d, b.chunk);
  }
  store_rows(grad_key, static_cast<T*>(g.grad_key) + b.pair * a.keys * a.d, at, b.begin, b.end, a.d, b.chunk,
             a.scale);
  store_rows(grad_value, static_cast<T*>(g.grad_value) + b.pair * a.keys * a.e, at, b.begin, b.end, a.e,
             b.chunk, 1.0f);
}

}  // namespace

size_t attention_statistics_bytes(const AttentionArguments& a) {
  return static_cast<size_t>(a.batch) * static_cast<size_t>(a.heads) * static_cast<size_t>(a.queries) *
         sizeof(RowStatistics);
}

cudaError_t attention_gradient(const AttentionGradArguments& g, cudaStream_t stream) {
  const AttentionArguments& a = g.attention;
  const int64_t pairs = int64_t{1} * a.batch * a.groups,
                rows = a.groups == 0 ? 0 : int64_t{1} * a.heads / a.groups * a.queries;
  const auto config = [&](int64_t blocks) {
    return LaunchConfig{dim3(static_cast<unsigned>(blocks * pairs)), dim3(kTileThreads),
                        static_cast<unsigned>(sizeof(AttentionTiles)), stream};
  };
  return with_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Statistics are computed even if grad_query has no columns.
    const cudaError_t error =
        launch(grad_query_kernel<T>, config(ceil_div(rows, kTileRows) * std::max(column_chunks(a.d), 1)), g);
    if (error != cudaSuccess) return error;
    return launch(grad_key_value_kernel<T>,
                  config(ceil_div(a.keys, kTileRows) * column_chunks(std::max(a.d, a.e))), g);
  });
}

}  // namespace librt::cuda
