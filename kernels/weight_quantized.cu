// Products of f32 rows with weights of 8 or 4 bits. Bound by the weights' bytes where rows are few: a warp
// makes one column of up to eight rows, its lanes read 16 bytes each of the column's weights, side by side,
// widen them in registers and use them for all rows; sums meet at the end.
#include "kernels/weight_quantized.h"

#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace rt::cuda {
namespace {

constexpr int kWarps = 4;

template <int kBits>
RT_DEVICE float weight_of(const Vector<uint32_t, 4>& words, int i) {
  constexpr int kOfWord = 32 / kBits;
  const uint32_t code = words[i / kOfWord] >> (kBits * (i % kOfWord));
  if constexpr (kBits == 8) return static_cast<float>(static_cast<int8_t>(code & 255u));
  return static_cast<float>(static_cast<int>(code & 15u) - 8);
}

template <int kBits, int kRows>
__global__ void __launch_bounds__(kWarps * 32, 2) weight_columns(WeightQuantizedArguments a) {
  constexpr int kCodes = 128 / kBits;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kRows;
  if (column >= a.n) return;
  const auto* weight = static_cast<const uint8_t*>(a.weight) + column * (a.k * kBits / 8);
  const float* scale = a.scale + column * (a.k / a.group);
  float sum[kRows] = {};
  for (int64_t k = static_cast<int64_t>(lane) * kCodes; k < a.k; k += 32 * kCodes) {
    const auto words = load_vector<4>(reinterpret_cast<const uint32_t*>(weight + k * kBits / 8));
    const float factor = scale[k / a.group];
    float codes[kCodes];
    RT_UNROLL
    for (int i = 0; i < kCodes; ++i) codes[i] = weight_of<kBits>(words, i);
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = first_row + r < a.rows ? first_row + r : a.rows - 1;
      float part = 0;
      RT_UNROLL
      for (int i = 0; i < kCodes; i += 4) {
        const auto four = load_vector<4>(a.x + row * a.k + k + i);
        RT_UNROLL
        for (int t = 0; t < 4; ++t) part += four[t] * codes[i + t];
      }
      sum[r] += part * factor;
    }
  }
  const float bias = a.bias != nullptr ? a.bias[column] : 0.0f;
  RT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const float total = warp_sum(sum[r]);
    if (lane == 0 && first_row + r < a.rows) a.y[(first_row + r) * a.n + column] = total + bias;
  }
}

template <int kBits>
cudaError_t start(const WeightQuantizedArguments& a, cudaStream_t stream) {
  const auto run = [&](auto kernel, int64_t rows) {
    const dim3 grid(static_cast<unsigned>((a.n + kWarps - 1) / kWarps),
                    static_cast<unsigned>((a.rows + rows - 1) / rows));
    return launch(kernel, {.grid = grid, .block = dim3(kWarps * 32), .stream = stream}, a);
  };
  if (a.rows == 1) return run(weight_columns<kBits, 1>, 1);
  if (a.rows <= 4) return run(weight_columns<kBits, 4>, 4);
  return run(weight_columns<kBits, 8>, 8);
}

}  // namespace

cudaError_t weight_quantized(const WeightQuantizedArguments& a, cudaStream_t stream) {
  return a.bits == 8 ? start<8>(a, stream) : start<4>(a, stream);
}

}  // namespace rt::cuda
