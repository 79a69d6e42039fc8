// Matmul of f32 rows with 8-bit or 4-bit weights, memory-bound on the weights where rows are few: a block
// computes four columns.
// One row: each thread reads 16 bytes of every column's weights; x is staged in shared memory, padded so that
// its reads have no bank conflicts. More rows, or groups that are no multiple of 16 bytes: four bytes of
// every column's weights, used for up to eight rows. Weights are dequantized in registers, partial sums
// reduced at the end.
#include "kernels/weight_quantized.h"

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kThreads = 128, kColumns = 4;

/// Unsigned weights with zero point 128 or 8. `bits`: 32 / kBits of them; `i` is constant where unrolled.
template <int kBits>
RT_DEVICE uint32_t unsigned_weights(uint32_t bits) {
  return kBits == 8 ? bits ^ 0x80808080u : bits;
}
/// The float with bits 0x4b000000 | m is 2^23 + m. With the weight at bit b, m = weight 2^b: one LOP3 inserts
/// it, and one FFMA scales by 2^-b and subtracts the rest, exactly. b <= 12, so that m stays below 2^23.
/// `base` is kBase in a register: LOP3 has room for one immediate value, which is the mask.
constexpr uint32_t kBase = 0x4b000000u;
template <int kBits>
RT_DEVICE float weight_of(uint32_t weights, int i, uint32_t base) {
  constexpr int kOfHalf = 16 / kBits, kZero = 1 << (kBits - 1);
  const int at = i % kOfHalf * kBits;
  const uint32_t placed = (i < kOfHalf ? weights : weights >> 16) & (((1u << kBits) - 1) << at);
  const float unit = 1.0f / static_cast<float>(1 << at);
  return __uint_as_float(placed | base) * unit - (0x1p23f * unit + kZero);
}

/// kBase, as a value that the compiler does not know: bits is 4 or 8.
RT_DEVICE uint32_t base_of(const WeightQuantizedArguments& a) {
  return kBase + (static_cast<uint32_t>(a.bits) >> 4);
}

/// The sums of the warps, plus bias.
template <int kOutputs>
RT_DEVICE void store_sums(const WeightQuantizedArguments& a, const float (&sum)[kOutputs], int64_t first_row,
                          int64_t first_column) {
  __shared__ float shared[kThreads / kWarpSize][kOutputs];
  const int thread = static_cast<int>(threadIdx.x);
  RT_UNROLL
  for (int i = 0; i < kOutputs; ++i) {
    const float total = warp_sum(sum[i]);
    if (thread % kWarpSize == 0) shared[thread / kWarpSize][i] = total;
  }
  __syncthreads();
  const int64_t row = first_row + thread / kColumns, output = first_column + thread % kColumns;
  if (thread >= kOutputs || row >= a.rows || output >= a.n) return;
  float total = a.bias != nullptr ? a.bias[output] : 0.0f;
  RT_UNROLL
  for (const auto& of_warp : shared) total += of_warp[thread];
  a.y[row * a.n + output] = total;
}

/// One row, 16 bytes of weights per column and thread.
template <int kBits>
__global__ void __launch_bounds__(kThreads, 5) decode_columns(WeightQuantizedArguments a) {
  constexpr int kPerWord = 32 / kBits, kVector = 4 * kPerWord, kStride = kVector + 4;
  alignas(16) __shared__ float staged[kThreads * kStride];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kColumns, groups = a.k / a.group;
  const auto vectors = static_cast<uint32_t>(a.k / kVector),
             vectors_of_group = static_cast<uint32_t>(a.group / kVector);
  const uint32_t base = base_of(a);
  // Staging: this thread's first four values of x, and the distance of the next ones.
  constexpr int kNext = kThreads * 4 / kVector * kStride;
  float* const to = staged + thread * 4 / kVector * kStride + thread * 4 % kVector;
  float sum[kColumns] = {};
#pragma unroll 1
  for (uint32_t first = 0; first < vectors; first += kThreads) {
    const uint32_t at = first + threadIdx.x;
    Vector<uint32_t, 4> weights[kColumns];
    float factor[kColumns];
    if (at < vectors) {
      RT_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        const int64_t column = min(first_column + c, a.n - 1);
        weights[c] = load_vector<4>(static_cast<const uint32_t*>(a.weight) + (column * vectors + at) * 4);
        factor[c] = a.scale[column * groups + at / vectors_of_group];
      }
    }
    if (first > 0) __syncthreads();
    const int64_t begin = static_cast<int64_t>(first) * kVector;
    const float* const from = a.x + begin;
    const auto last = static_cast<int>(min(a.k - begin, int64_t{kThreads * kVector})) - 4;
    RT_UNROLL
    for (int i = 0; i < kVector / 4; ++i)
      *reinterpret_cast<Vector<float, 4>*>(to + i * kNext) =
          load_vector<4>(from + min((i * kThreads + thread) * 4, last));
    __syncthreads();
    if (at >= vectors) continue;
    float part[kColumns] = {};
    RT_UNROLL
    for (int word = 0; word < 4; ++word) {
      uint32_t of[kColumns];
      RT_UNROLL
      for (int c = 0; c < kColumns; ++c) of[c] = unsigned_weights<kBits>(weights[c][word]);
      RT_UNROLL
      for (int i = 0; i < kPerWord; i += 4) {
        const auto four = load_vector<4>(staged + thread * kStride + word * kPerWord + i);
        RT_UNROLL
        for (int t = 0; t < 4; ++t) {
          RT_UNROLL
          for (int c = 0; c < kColumns; ++c) part[c] += four[t] * weight_of<kBits>(of[c], i + t, base);
        }
      }
    }
    RT_UNROLL
    for (int c = 0; c < kColumns; ++c) sum[c] += part[c] * factor[c];
  }
  store_sums(a, sum, 0, first_column);
}

template <int kBits, int kRows>
__global__ void __launch_bounds__(kThreads, 3) weight_columns(WeightQuantizedArguments a) {
  constexpr int kPerWord = 32 / kBits, kOutputs = kRows * kColumns;
  constexpr int kSteps = kRows == 1 ? 2 : 1;  // more loads in flight where there is little work per weight
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kColumns;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kRows;
  const auto words = static_cast<uint32_t>(a.k / kPerWord),
             words_of_group = static_cast<uint32_t>(a.group / kPerWord);
  const int64_t groups = a.k / a.group;
  const auto column = [&](int c) { return min(first_column + c, a.n - 1); };
  const uint32_t base = base_of(a);
  float sum[kOutputs] = {};
  for (uint32_t first = threadIdx.x; first < words; first += kThreads * kSteps) {
    uint32_t word[kSteps][kColumns] = {};
    float factor[kSteps][kColumns] = {};
    RT_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const uint32_t at = first + static_cast<uint32_t>(step) * kThreads;
      if (at >= words) break;
      const uint32_t group = at / words_of_group;
      RT_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        word[step][c] = static_cast<const uint32_t*>(a.weight)[column(c) * words + at];
        factor[step][c] = a.scale[column(c) * groups + group];
      }
    }
    RT_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const uint32_t at = first + static_cast<uint32_t>(step) * kThreads;
      if (at >= words) break;
      float quantized[kColumns][kPerWord];
      RT_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        const uint32_t weights = unsigned_weights<kBits>(word[step][c]);
        RT_UNROLL
        for (int i = 0; i < kPerWord; ++i) quantized[c][i] = weight_of<kBits>(weights, i, base);
      }
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float* x = a.x + min(first_row + r, a.rows - 1) * a.k + static_cast<int64_t>(at) * kPerWord;
        float part[kColumns] = {};
        RT_UNROLL
        for (int i = 0; i < kPerWord; i += 4) {
          const auto four = load_vector<4>(x + i);
          RT_UNROLL
          for (int t = 0; t < 4; ++t) {
            RT_UNROLL
            for (int c = 0; c < kColumns; ++c) part[c] += four[t] * quantized[c][i + t];
          }
        }
        RT_UNROLL
        for (int c = 0; c < kColumns; ++c) sum[r * kColumns + c] += part[c] * factor[step][c];
      }
    }
  }
  store_sums(a, sum, first_row, first_column);
}

template <int kBits>
cudaError_t start(const WeightQuantizedArguments& a, cudaStream_t stream) {
  const auto run = [&](auto kernel, int64_t rows) {
    const dim3 grid(static_cast<unsigned>(ceil_div(a.n, kColumns)),
                    static_cast<unsigned>(ceil_div(a.rows, rows)));
    return launch(kernel, {.grid = grid, .block = dim3(kThreads), .stream = stream}, a);
  };
  constexpr int kVector = 128 / kBits;
  if (a.rows == 1 && a.k % kVector == 0 && a.group % kVector == 0) return run(decode_columns<kBits>, 1);
  if (a.rows == 1) return run(weight_columns<kBits, 1>, 1);
  if (a.rows <= 4) return run(weight_columns<kBits, 4>, 4);
  return run(weight_columns<kBits, 8>, 8);
}

}  // namespace

cudaError_t weight_quantized(const WeightQuantizedArguments& a, cudaStream_t stream) {
  return a.bits == 8 ? start<8>(a, stream) : start<4>(a, stream);
}

}  // namespace librt::cuda
