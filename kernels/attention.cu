// Attention with FMAs on CUDA cores, and the merge of the splits' partial results. The tensor core kernel is
// in attention_tensor.cu.
#include "kernels/attention.cuh"

#include <algorithm>

#include "kernels/attention_tensor.h"

namespace librt::cuda {
namespace {

/// A block has 32 rows, eight per warp; 32 keys, one per lane; columns of y in chunks of 128, four per lane.
constexpr int kRows = 32, kKeys = 32, kThreads = 128, kWarpRows = kRows / (kThreads / kWarpSize);
constexpr int kColumns = 128, kLaneColumns = kColumns / kWarpSize;
constexpr int kDepth = 32, kKeyLead = kDepth + 4;

struct Shared {
  float query[kRows][kDepth];
  float key[kKeys][kKeyLead];
  float value[kKeys][kColumns];
  float weight[kRows][kKeys];
};

/// More than 128 registers per thread: 32 results, scores and statistics of eight rows, and the mask state of
/// eight rows.
template <class T>
__global__ void __launch_bounds__(kThreads, 2) attention_kernel(AttentionArguments a) {
  auto& shared = *dynamic_shared<Shared>();
  const int chunks = (a.e + kColumns - 1) / kColumns;
  const AttentionBlock b = attention_block<kRows>(a, chunks);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize,
            warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int own_row = warp * kWarpRows;
  const T* query = static_cast<const T*>(a.query) + b.pair * b.rows * a.d;
  const T* key = static_cast<const T*>(a.key) + b.pair * a.keys * a.d;
  const T* value = static_cast<const T*>(a.value) + b.pair * a.keys * a.e;
  float row_max[kWarpRows], sum[kWarpRows], result[kWarpRows][kLaneColumns] = {};
  RT_UNROLL
  for (int i = 0; i < kWarpRows; ++i) row_max[i] = -INFINITY, sum[i] = 0;

  for (int first = b.begin; first < b.end; first += kKeys) {
    float score[kWarpRows] = {};
    for (int d0 = 0; d0 < a.d; d0 += kDepth) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kRows * kDepth; i += kThreads) {
        const int r = i / kDepth, d = d0 + i % kDepth;
        const bool row_inside = d < a.d && b.row + r < b.rows, key_inside = d < a.d && first + r < b.end;
        shared.query[r][i % kDepth] =
            row_inside ? to_float(query[static_cast<int64_t>(b.row + r) * a.d + d]) : 0.0f;
        shared.key[r][i % kDepth] =
            key_inside ? to_float(key[static_cast<int64_t>(first + r) * a.d + d]) : 0.0f;
      }
      __syncthreads();
      RT_UNROLL
      for (int d = 0; d < kDepth; d += 4) {
        const auto k = load_vector<4>(&shared.key[lane][d]);
        RT_UNROLL
        for (int i = 0; i < kWarpRows; ++i) {
          const auto q = load_vector<4>(&shared.query[own_row + i][d]);
          RT_UNROLL
          for (int c = 0; c < 4; ++c) score[i] += q[c] * k[c];
        }
      }
    }
    // The values of the previous keys are no longer read: all threads have passed the barriers above, unless
    // d is 0.
    if (a.d == 0) __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kKeys * kColumns; i += kThreads) {
      const int t = first + i / kColumns, column = b.chunk * kColumns + i % kColumns;
      shared.value[i / kColumns][i % kColumns] =
          t < b.end && column < a.e ? to_float(value[static_cast<int64_t>(t) * a.e + column]) : 0.0f;
    }
    RT_UNROLL
    for (int i = 0; i < kWarpRows; ++i) {
      const float own = ScoreRow<T>(a, b, b.row + own_row + i).score(a, score[i], first + lane);
      const float next = Maximum{}(row_max[i], warp_reduce(own, Maximum{}));
      const float factor = expf(row_max[i] - base_of(next)), weight = expf(own - base_of(next));
      row_max[i] = next;
      sum[i] = sum[i] * factor + warp_sum(weight);
      shared.weight[own_row + i][lane] = weight;
      RT_UNROLL
      for (int c = 0; c < kLaneColumns; ++c) result[i][c] *= factor;
    }
    __syncthreads();
    for (int t = 0; t < kKeys; t += 4) {
      float v[4][kLaneColumns];
      RT_UNROLL
      for (int q = 0; q < 4; ++q) RT_UNROLL
      for (int c = 0; c < kLaneColumns; ++c) v[q][c] = shared.value[t + q][c * kWarpSize + lane];
      RT_UNROLL
      for (int i = 0; i < kWarpRows; ++i) {
        const auto weight = load_vector<4>(&shared.weight[own_row + i][t]);
        RT_UNROLL
        for (int q = 0; q < 4; ++q) RT_UNROLL
        for (int c = 0; c < kLaneColumns; ++c) result[i][c] += weight[q] * v[q][c];
      }
    }
  }

  RT_UNROLL
  for (int i = 0; i < kWarpRows; ++i) {
    const int row = b.row + own_row + i;
    if (row >= b.rows) continue;
    const bool parts = a.splits > 1;
    float* partial = parts ? partial_row(a, b, row) : nullptr;
    if (parts && lane == 0 && b.chunk == 0) partial[0] = row_max[i], partial[1] = sum[i];
    const float factor = sum[i] == 0 ? 0.0f : 1.0f / sum[i];
    RT_UNROLL
    for (int c = 0; c < kLaneColumns; ++c) {
      const int column = b.chunk * kColumns + c * kWarpSize + lane;
      if (column >= a.e) continue;
      if (parts)
        partial[2 + column] = result[i][c];
      else
        static_cast<T*>(a.y)[(b.pair * b.rows + row) * a.e + column] = from_float<T>(result[i][c] * factor);
    }
  }
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
  const int block = a.algorithm == AttentionAlgorithm::Tensor ? kTensorAttentionRows : kRows;
  const int64_t rows = a.groups == 0 ? 0 : int64_t{1} * a.heads / a.groups * a.queries;
  const int64_t chunks = a.algorithm == AttentionAlgorithm::Tensor ? 1 : ceil_div(a.e, kColumns);
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
    const int64_t blocks = ceil_div(int64_t{1} * a.heads / a.groups * a.queries, kRows) * a.batch * a.groups *
                           ceil_div(a.e, kColumns) * a.splits;
    error = with_float(a.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return launch(attention_kernel<T>,
                    {dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                     static_cast<unsigned>(sizeof(Shared)), stream},
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
