// BlockQuantize and BlockDequantize.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace rt::cuda {

/// `count` numbers in blocks of `block`, the last one shorter; the codebook's `levels` numbers ascend.
struct BlockCodes {
  const float* codebook = nullptr;
  int64_t levels = 256, block = 256, count = 0;
  bool keep_positive = false;  ///< numbers above 0 have at least code 1
};

/// A scale is the largest magnitude of a block; a code the number of thresholds that x reaches, which lie
/// half way between two numbers of the codebook, times the scale.
cudaError_t block_quantize(const float* x, uint8_t* codes, float* scales, const BlockCodes& blocks,
                           cudaStream_t stream);
/// codebook[code] times the block's scale.
cudaError_t block_dequantize(const uint8_t* codes, const float* scales, float* y, const BlockCodes& blocks,
                             cudaStream_t stream);

}  // namespace rt::cuda
