// Attention on tensor cores; the equations are in attention.cuh. A block has 64 rows in four warps of 16. A
// thread has two rows of its warp, eight apart, and of each two columns in every eight (the layout of
// mma.m16n8k16's accumulators). The softmax weights stay in registers: the accumulators of the first matmul
// are the A fragments of the second.
#include "kernels/attention_tensor.h"

#include "kernels/attention.cuh"

namespace librt::cuda {
namespace {

constexpr int kRows = kTensorAttentionRows, kThreads = 128;

/// kWidth: d and e padded; kKeys keys at a time. Wide rows take more than 128 registers: 64 results and 16
/// scores of each thread are live throughout the loop.
template <int kPaddedWidth>
struct Tile {
  static constexpr int kWidth = kPaddedWidth, kKeys = kWidth == 128 ? 32 : 64, kLead = kWidth + 8;
  static constexpr int kBlocks = kWidth == 128 ? 2 : 3;
  static constexpr int kElements = (kRows + 2 * kKeys) * kLead;
};

template <class T>
RT_DEVICE uint32_t packed_pair(float low, float high) {
  const Vector<T, 2> pair{{from_float<T>(low), from_float<T>(high)}};
  uint32_t bits;
  memcpy(&bits, &pair, sizeof(bits));
  return bits;
}

/// Rows [first, last) of a matrix of `columns` columns; zeros elsewhere.
template <class T, int kCount, int kWidth, int kLead>
RT_DEVICE void load_rows(T* tile, const T* from, int first, int last, int columns) {
  for (int i = static_cast<int>(threadIdx.x); i < kCount * kWidth / 8; i += kThreads) {
    const int r = i / (kWidth / 8), c = i % (kWidth / 8) * 8;
    const bool inside = first + r < last && c < columns;
    ptx::copy_async_16(tile + r * kLead + c,
                       inside ? from + static_cast<int64_t>(first + r) * columns + c : from, inside ? 16 : 0);
  }
}

/// score = query rows of this warp times the keys of the tile.
template <class Tile, class T>
RT_DEVICE void multiply_keys(float (&score)[Tile::kKeys / 8][4], const T* query, const T* key, int lane) {
  RT_UNROLL
  for (int d = 0; d < Tile::kWidth; d += 16) {
    uint32_t q[4];
    ptx::load_matrix_x4(q, query + lane % 16 * Tile::kLead + d + lane / 16 * 8);
    RT_UNROLL
    for (int j = 0; j < Tile::kKeys / 8; j += 2) {
      uint32_t k[4];
      ptx::load_matrix_x4(k, key + (j * 8 + lane / 16 * 8 + lane % 8) * Tile::kLead + d + lane / 8 % 2 * 8);
      const uint32_t low[2] = {k[0], k[1]}, high[2] = {k[2], k[3]};
      ptx::mma_16x8x16(score[j], q, low, T{});
      ptx::mma_16x8x16(score[j + 1], q, high, T{});
    }
  }
}

/// One step of the online softmax of row `h` of this thread: products become exp(score - row_max), and the
/// sum and the result are rescaled. Four lanes share a row; each sums its own columns.
template <class Tile, class T>
RT_DEVICE void soften(float (&score)[Tile::kKeys / 8][4], int h, const AttentionArguments& a,
                      const ScoreRow<T>& row, int first_key, float& row_max, float& sum,
                      float (&result)[Tile::kWidth / 8][4]) {
  float next = row_max;
  RT_UNROLL
  for (int j = 0; j < Tile::kKeys / 8; ++j) RT_UNROLL
  for (int c = 0; c < 2; ++c) {
    float& s = score[j][h * 2 + c];
    s = row.score(a, s, first_key + j * 8 + c);
    next = Maximum{}(next, s);
  }
  next = Maximum{}(next, __shfl_xor_sync(kFullMask, next, 1));
  next = Maximum{}(next, __shfl_xor_sync(kFullMask, next, 2));
  const float base = base_of(next), factor = expf(row_max - base);
  row_max = next;
  sum *= factor;
  RT_UNROLL
  for (int j = 0; j < Tile::kKeys / 8; ++j) RT_UNROLL
  for (int c = 0; c < 2; ++c) {
    float& s = score[j][h * 2 + c];
    s = expf(s - base);
    sum += s;
  }
  RT_UNROLL
  for (int j = 0; j < Tile::kWidth / 8; ++j) {
    result[j][h * 2] *= factor;
    result[j][h * 2 + 1] *= factor;
  }
}

/// result += weights times the values of the tile.
template <class Tile, class T>
RT_DEVICE void add_values(float (&result)[Tile::kWidth / 8][4], const float (&weights)[Tile::kKeys / 8][4],
                          const T* value, int lane) {
  RT_UNROLL
  for (int t = 0; t < Tile::kKeys; t += 16) {
    uint32_t weight[4];
    RT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float* pair = &weights[t / 8 + i / 2][i % 2 * 2];
      weight[i] = packed_pair<T>(pair[0], pair[1]);
    }
    RT_UNROLL
    for (int j = 0; j < Tile::kWidth / 8; j += 2) {
      uint32_t v[4];
      ptx::load_matrix_x4_transposed(v, value + (t + lane % 16) * Tile::kLead + j * 8 + lane / 16 * 8);
      const uint32_t low[2] = {v[0], v[1]}, high[2] = {v[2], v[3]};
      ptx::mma_16x8x16(result[j], weight, low, T{});
      ptx::mma_16x8x16(result[j + 1], weight, high, T{});
    }
  }
}

/// Writes row `h` of this thread to y, or with splits its partial result.
template <class Tile, class T>
RT_DEVICE void store_row(const float (&result)[Tile::kWidth / 8][4], int h, const AttentionArguments& a,
                         const AttentionBlock& b, int row, float row_max, float total, int lane) {
  const bool parts = a.splits > 1;
  float* partial = parts ? partial_row(a, b, row) : nullptr;
  if (parts && lane % 4 == 0) partial[0] = row_max, partial[1] = total;
  const float factor = inverse_of(total);
  T* y = static_cast<T*>(a.y) + (b.pair * b.rows + row) * a.e;
  RT_UNROLL
  for (int j = 0; j < Tile::kWidth / 8; ++j) {
    const int column = j * 8 + lane % 4 * 2;
    if (column >= a.e) continue;
    if (parts) {
      partial[2 + column] = result[j][h * 2];
      partial[3 + column] = result[j][h * 2 + 1];
    } else {
      const Vector<T, 2> pair{
          {from_float<T>(result[j][h * 2] * factor), from_float<T>(result[j][h * 2 + 1] * factor)}};
      store_vector(y + column, pair);
    }
  }
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads, Tile::kBlocks) attention_tensor_kernel(AttentionArguments a) {
  constexpr int kWidth = Tile::kWidth, kKeys = Tile::kKeys, kLead = Tile::kLead;
  T* shared_query = dynamic_shared<T>();
  T* shared_key = shared_query + kRows * kLead;
  T* shared_value = shared_key + kKeys * kLead;
  const AttentionBlock b = attention_block<kRows>(a, 1);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize,
            warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const T* key = static_cast<const T*>(a.key) + b.pair * a.keys * a.d;
  const T* value = static_cast<const T*>(a.value) + b.pair * a.keys * a.e;
  load_rows<T, kRows, kWidth, kLead>(shared_query, static_cast<const T*>(a.query) + b.pair * b.rows * a.d,
                                     b.row, b.rows, a.d);
  const int own_row = b.row + warp * 16 + lane / 4;
  const ScoreRow<T> rows[2] = {ScoreRow<T>(a, b, own_row), ScoreRow<T>(a, b, own_row + 8)};
  float result[kWidth / 8][4] = {}, row_max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

  for (int first = b.begin; first < b.end; first += kKeys) {
    load_rows<T, kKeys, kWidth, kLead>(shared_key, key, first, b.end, a.d);
    ptx::copy_async_commit();
    load_rows<T, kKeys, kWidth, kLead>(shared_value, value, first, b.end, a.e);
    ptx::copy_async_commit();
    ptx::copy_async_wait<1>();  // the keys
    __syncthreads();
    float score[kKeys / 8][4] = {};
    multiply_keys<Tile>(score, shared_query + warp * 16 * kLead, shared_key, lane);
    RT_UNROLL
    for (int h = 0; h < 2; ++h)
      soften<Tile>(score, h, a, rows[h], first + lane % 4 * 2, row_max[h], sum[h], result);
    ptx::copy_async_wait<0>();  // the values
    __syncthreads();
    add_values<Tile>(result, score, shared_value, lane);
    __syncthreads();
  }
  ptx::copy_async_wait<0>();

  RT_UNROLL
  for (int h = 0; h < 2; ++h) {
    float total = sum[h];
    total += __shfl_xor_sync(kFullMask, total, 1);
    total += __shfl_xor_sync(kFullMask, total, 2);
    const int row = own_row + h * 8;
    if (row < b.rows) store_row<Tile, T>(result, h, a, b, row, row_max[h], total, lane);
  }
}

template <class T, class Tile>
cudaError_t run(const AttentionArguments& a, cudaStream_t stream) {
  const int64_t blocks =
      ceil_div(int64_t{1} * a.heads / a.groups * a.queries, kRows) * a.batch * a.groups * a.splits;
  return launch(attention_tensor_kernel<T, Tile>,
                {dim3(static_cast<unsigned>(blocks)), dim3(kThreads), Tile::kElements * sizeof(T), stream},
                a);
}

template <class T>
cudaError_t run_width(const AttentionArguments& a, cudaStream_t stream) {
  if (a.d <= 64 && a.e <= 64) return run<T, Tile<64>>(a, stream);
  return run<T, Tile<128>>(a, stream);
}

}  // namespace

cudaError_t attention_tensor(const AttentionArguments& a, cudaStream_t stream) {
  return a.type == ElementType::F16 ? run_width<__half>(a, stream) : run_width<__nv_bfloat16>(a, stream);
}

}  // namespace librt::cuda
