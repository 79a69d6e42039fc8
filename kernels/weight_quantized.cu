// Matmul of f32 rows with 8-bit or 4-bit weights. Memory-bound on the weights where rows are few: a block
// computes four columns of up to eight rows. Each thread reads four bytes of every column's weights
// (coalesced), dequantizes them in registers and uses them for all rows, and each value of x for all columns;
// partial sums are reduced at the end.
#include "kernels/weight_quantized.h"

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kThreads = 128, kColumns = 4;

/// 4 bits: the float with bits 0x4b000000 | c is 2^23 + c; minus 2^23 and the zero point 8.
template <int kBits>
RT_DEVICE float weight_of(uint32_t word, int i) {
  if constexpr (kBits == 8) return static_cast<float>(static_cast<int8_t>(word >> (8 * i) & 255u));
  return __uint_as_float((word >> (4 * i) & 15u) | 0x4b000000u) - (0x1p23f + 8.0f);
}

template <int kBits, int kRows>
__global__ void __launch_bounds__(kThreads, 3) weight_columns(WeightQuantizedArguments a) {
  constexpr int kPerWord = 32 / kBits, kOutputs = kRows * kColumns;
  constexpr int kSteps = kRows == 1 ? 2 : 1;  // more loads in flight where there is little work per weight
  __shared__ float shared[kThreads / kWarpSize][kOutputs];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kColumns;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kRows;
  const auto words = static_cast<uint32_t>(a.k / kPerWord),
             words_of_group = static_cast<uint32_t>(a.group / kPerWord);
  const int64_t groups = a.k / a.group;
  const auto column = [&](int c) { return min(first_column + c, a.n - 1); };
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
        RT_UNROLL
        for (int i = 0; i < kPerWord; ++i) quantized[c][i] = weight_of<kBits>(word[step][c], i);
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

template <int kBits>
cudaError_t start(const WeightQuantizedArguments& a, cudaStream_t stream) {
  const auto run = [&](auto kernel, int64_t rows) {
    const dim3 grid(static_cast<unsigned>(ceil_div(a.n, kColumns)),
                    static_cast<unsigned>(ceil_div(a.rows, rows)));
    return launch(kernel, {.grid = grid, .block = dim3(kThreads), .stream = stream}, a);
  };
  if (a.rows == 1) return run(weight_columns<kBits, 1>, 1);
  if (a.rows <= 4) return run(weight_columns<kBits, 4>, 4);
  return run(weight_columns<kBits, 8>, 8);
}

}  // namespace

cudaError_t weight_quantized(const WeightQuantizedArguments& a, cudaStream_t stream) {
  return a.bits == 8 ? start<8>(a, stream) : start<4>(a, stream);
}

}  // namespace librt::cuda
