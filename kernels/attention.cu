// Attention with FMAs on CUDA cores, and the merge of the splits' partial results; the equations are in
// attention.cuh. The tensor core kernel is in attention_tensor.cu.
#include "kernels/attention.cuh"

#include <algorithm>

#include "kernels/attention_tensor.h"
#include "kernels/attention_tiles.cuh"

namespace librt::cuda {
namespace {

/// Writes row `row` of y, or with splits its partial result.
template <class T>
RT_DEVICE void store_row(const AttentionArguments& a, const AttentionBlock& b, int row, int lane,
                         const RunningSoftmax& running, const float (&result)[kTileLaneColumns]) {
  const bool parts = a.splits > 1;
  float* partial = parts ? partial_row(a, b, row) : nullptr;
  if (parts && lane == 0 && b.chunk == 0) partial[0] = running.row_max, partial[1] = running.sum;
  const float factor = inverse_of(running.sum);
  RT_UNROLL
  for (int c = 0; c < kTileLaneColumns; ++c) {
    const int column = b.chunk * kTileColumns + c * kWarpSize + lane;
    if (column >= a.e) continue;
    if (parts)
      partial[2 + column] = result[c];
    else
      static_cast<T*>(a.y)[(b.pair * b.rows + row) * a.e + column] = from_float<T>(result[c] * factor);
  }
}

/// A block has 32 rows, eight per warp; 32 keys at a time, one per lane; 128 columns of y, four per lane.
/// More than 128 registers per thread: 32 results, scores and statistics of eight rows, and the mask state of
/// eight rows.
template <class T>
__global__ void __launch_bounds__(kTileThreads, 2) attention_kernel(AttentionArguments a) {
  auto& tiles = *dynamic_shared<AttentionTiles>();
  const AttentionBlock b = attention_block<kTileRows>(a, column_chunks(a.e));
  const TileLane at;
  const T* query = static_cast<const T*>(a.query) + b.pair * b.rows * a.d;
  const T* key = static_cast<const T*>(a.key) + b.pair * a.keys * a.d;
  const T* value = static_cast<const T*>(a.value) + b.pair * a.keys * a.e;
  RunningSoftmax running[kTileWarpRows];
  float result[kTileWarpRows][kTileLaneColumns] = {};

  for (int first = b.begin; first < b.end; first += kTileRows) {
    float score[kTileWarpRows] = {};
    multiply_tiles(score, tiles, at, TileRows<T>{query, b.row, b.rows}, TileRows<T>{key, first, b.end}, a.d);
    // The values of the previous keys are no longer read: all threads have passed the barriers above, unless
    // d is 0.
    if (a.d == 0) __syncthreads();
    load_columns(tiles, TileRows<T>{value, first, b.end}, a.e, b.chunk);
    RT_UNROLL
    for (int i = 0; i < kTileWarpRows; ++i) {
      float weight = ScoreRow<T>(a, b, b.row + at.row + i).score(a, score[i], first + at.lane);
      const float factor = running[i].add(weight);
      tiles.weight[at.row + i][at.lane] = weight;
      RT_UNROLL
      for (int c = 0; c < kTileLaneColumns; ++c) result[i][c] *= factor;
    }
    __syncthreads();
    add_columns(result, tiles, at);
  }

  RT_UNROLL
  for (int i = 0; i < kTileWarpRows; ++i)
    if (b.row + at.row + i < b.rows) store_row<T>(a, b, b.row + at.row + i, at.lane, running[i], result[i]);
}

/// y = sum over the splits of exp(split maximum - overall maximum) result / the same sum of the splits' sums.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    merge_kernel(const float* partial, T* y, int64_t count, int e, int splits) {
  const int64_t i = global_index();
  if (i >= count) return;
  const int64_t row = i / e;
  const float* parts = partial + row * splits * (e + 2);
  float row_max = -INFINITY;
  for (int s = 0; s < splits; ++s) row_max = Maximum{}(row_max, parts[s * (e + 2)]);
  float sum = 0, result = 0;
  for (int s = 0; s < splits; ++s) {
    const float* part = parts + s * (e + 2);
    const float factor = expf(part[0] - base_of(row_max));
    sum += factor * part[1];
    result += factor * part[2 + i % e];
  }
  y[i] = from_float<T>(sum == 0 ? 0.0f : result / sum);
}

int64_t rows_of(const AttentionArguments& a) {
  return static_cast<int64_t>(a.batch) * a.heads * a.queries;
}

}  // namespace

int attention_splits(const AttentionArguments& a, int multiprocessors) {
  const int block = a.algorithm == AttentionAlgorithm::Tensor ? kTensorAttentionRows : kTileRows;
  const int64_t rows = a.groups == 0 ? 0 : int64_t{1} * a.heads / a.groups * a.queries;
  const int64_t chunks = a.algorithm == AttentionAlgorithm::Tensor ? 1 : column_chunks(a.e);
  const int64_t blocks = std::max<int64_t>(ceil_div(rows, block) * a.batch * a.groups * chunks, 1);
  return static_cast<int>(
      std::clamp<int64_t>(std::min<int64_t>(2 * multiprocessors / blocks, a.keys / 256), 1, 64));
}

size_t attention_partial_bytes(const AttentionArguments& a) {
  if (a.splits <= 1) return 0;
  return static_cast<size_t>(rows_of(a)) * static_cast<size_t>(a.splits) * static_cast<size_t>(a.e + 2) *
         sizeof(float);
}

cudaError_t attention(const AttentionArguments& a, cudaStream_t stream) {
  const int64_t count = rows_of(a) * a.e;
  if (count == 0) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  if (a.algorithm == AttentionAlgorithm::Tensor) {
    error = attention_tensor(a, stream);
  } else {
    const int64_t blocks = ceil_div(int64_t{1} * a.heads / a.groups * a.queries, kTileRows) * a.batch *
                           a.groups * column_chunks(a.e) * a.splits;
    error = with_float(a.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return launch(attention_kernel<T>,
                    {dim3(static_cast<unsigned>(blocks)), dim3(kTileThreads),
                     static_cast<unsigned>(sizeof(AttentionTiles)), stream},
                    a);
    });
  }
  if (error != cudaSuccess || a.splits == 1) return error;
  return with_float(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(merge_kernel<T>, launch_each(count, stream), static_cast<const float*>(a.partial),
                  static_cast<T*>(a.y), count, a.e, a.splits);
  });
}

}  // namespace librt::cuda
