// Quantize: one thread block per quantization block, which first reduces the scale. Dequantize: one thread
// per element.
#include "kernels/block_quantize.h"

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

constexpr int kBlock = 128;

__global__ void __launch_bounds__(kBlock)
    quantize_block(const float* x, uint8_t* quantized, float* scales, BlockQuantization blocks) {
  __shared__ float shared[kWarpSize];
  __shared__ float thresholds[256];  // [i] is the threshold below codebook value i
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * blocks.block;
  const int64_t end = min(begin + blocks.block, blocks.count);
  const int thread = static_cast<int>(threadIdx.x);
  float scale = 0;
  for (int64_t i = begin + thread; i < end; i += kBlock) scale = Maximum{}(scale, fabsf(x[i]));
  scale = block_reduce(scale, Maximum{}, shared);
  for (int i = thread; i < 256; i += kBlock)
    thresholds[i] =
        i > 0 && i < blocks.levels ? 0.5f * (blocks.codebook[i - 1] + blocks.codebook[i]) * scale : INFINITY;
  __syncthreads();
  if (thread == 0) scales[blockIdx.x] = scale;
  for (int64_t i = begin + thread; i < end; i += kBlock) {
    int code = 0;
    for (int half = 128; half > 0; half /= 2) code += x[i] >= thresholds[code + half] ? half : 0;
    quantized[i] = static_cast<uint8_t>(blocks.keep_positive && x[i] > 0 ? max(code, 1) : code);
  }
}

__global__ void __launch_bounds__(kElementwiseThreads)
    dequantize_each(const uint8_t* quantized, const float* scales, float* y, BlockQuantization blocks) {
  const int64_t i = global_index();
  if (i >= blocks.count) return;
  const int64_t code = quantized[i];
  y[i] = blocks.codebook[min(code, blocks.levels - 1)] * scales[i / blocks.block];
}

}  // namespace

cudaError_t block_quantize(const float* x, uint8_t* quantized, float* scales, const BlockQuantization& blocks,
                           cudaStream_t stream) {
  const int64_t groups = ceil_div(blocks.count, blocks.block);
  return launch(quantize_block, launch_each(groups * kBlock, stream, kBlock), x, quantized, scales, blocks);
}

cudaError_t block_dequantize(const uint8_t* quantized, const float* scales, float* y,
                             const BlockQuantization& blocks, cudaStream_t stream) {
  return launch(dequantize_each, launch_each(blocks.count, stream), quantized, scales, y, blocks);
}

}  // namespace librt::cuda
