// Convolutions with few channels per group, one thread per result: mainly depthwise ones, whose GEMM would
// have one column. Adjacent threads have adjacent channels.
#pragma once

#include "kernels/conv_operands.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

/// Forward and Data: result element (pixel, channel).
template <class T, bool kData>
__global__ void __launch_bounds__(kElementwiseThreads)
    direct_conv_kernel(const T* x, const T* weight, ConvSide side, Divisor channels, Divisor group_result,
                       int group_read, int filter, Gemm p) {
  const int64_t index = global_index();
  if (index >= static_cast<int64_t>(side.pixels) * channels.value) return;
  // Pixels and channels are below 2^31 each; their product may be more.
  const int pixel = static_cast<int>(index / channels.value),
            channel = static_cast<int>(index % channels.value);
  const QuotientRemainder group = divide(channel, group_result);
  const Position at = pixel_position(side, pixel);
  const int taps = static_cast<int>(side.kernel[0].value * side.kernel[1].value * side.kernel[2].value);
  const T* from = x + group.quotient * group_read;
  float sum = 0;
  for (int tap = 0; tap < taps; ++tap) {
    const int64_t offset = read_offset<kData>(side, at, tap_position(side, tap));
    if (offset < 0) continue;
    if constexpr (kData) {
      const auto width = static_cast<int>(group_result.value);
      const T* w =
          weight + static_cast<int64_t>(group.quotient) * group_read * filter + tap * width + group.remainder;
      for (int o = 0; o < group_read; ++o)
        sum += to_float(from[offset + o]) * to_float(w[static_cast<int64_t>(o) * filter]);
    } else {
      const T* w = weight + static_cast<int64_t>(channel) * filter + tap * group_read;
      for (int c = 0; c < group_read; ++c) sum += to_float(from[offset + c]) * to_float(w[c]);
    }
  }
  store_result<T>(p, {0, 0}, pixel, channel, sum);
}

constexpr int kPixelLanes = 8;

/// Weight: the 32 lanes of a row have adjacent output channels, one tap and one channel of the group; the
/// rows divide the pixels of this split.
template <class T>
__global__ void __launch_bounds__(kWarpSize* kPixelLanes)
    direct_weight_grad_kernel(const T* x, const T* grad, ConvSide side, int output_channels, int group_out,
                              int group_in, Gemm p) {
  __shared__ float shared[kPixelLanes][kWarpSize];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize,
            line = static_cast<int>(threadIdx.x) / kWarpSize;
  const int o = static_cast<int>(blockIdx.x) * kWarpSize + lane;
  const int tap = static_cast<int>(blockIdx.z) / group_in, c = static_cast<int>(blockIdx.z) % group_in;
  const int part = (side.pixels + p.splits - 1) / p.splits;
  const int begin = static_cast<int>(blockIdx.y) * part;
  const int end = begin < side.pixels - part ? begin + part : side.pixels;
  float sum = 0;
  if (o < output_channels) {
    const Position at = tap_position(side, tap);
    const T* from = x + o / group_out * group_in + c;
    for (int pixel = begin + line; pixel < end; pixel += kPixelLanes) {
      const int64_t offset = read_offset<false>(side, pixel_position(side, pixel), at);
      if (offset >= 0)
        sum += to_float(from[offset]) * to_float(grad[static_cast<int64_t>(pixel) * output_channels + o]);
    }
  }
  shared[line][lane] = sum;
  __syncthreads();
  if (line == 0 && o < output_channels) {
    RT_UNROLL
    for (int i = 1; i < kPixelLanes; ++i) sum += shared[i][lane];
    const int column = tap * group_in + c;
    if (p.splits > 1)
      static_cast<float*>(
          p.partial)[(static_cast<int64_t>(blockIdx.y) * output_channels + o) * p.n + column] = sum;
    else
      store_result<T>(p, {0, 0}, o, column, sum);
  }
}

}  // namespace
}  // namespace librt::cuda
