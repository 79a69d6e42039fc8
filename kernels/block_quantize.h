// BlockQuantize and BlockDequantize.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace librt::cuda {

/// `count` values in blocks of `block`, the last one shorter; the codebook has `levels` ascending values.
struct BlockQuantization {
  const float* codebook = nullptr;
  int64_t levels = 256, block = 256, count = 0;
  bool keep_positive = false;  ///< values above 0 are quantized to at least 1
};

/// The scale is a block's largest magnitude. The quantized value is the number of thresholds <= x; thresholds
/// are the midpoints of adjacent codebook values, times the scale.
cudaError_t block_quantize(const float* x, uint8_t* quantized, float* scales, const BlockQuantization& blocks,
                           cudaStream_t stream);
/// codebook[code] times the block's scale.
cudaError_t block_dequantize(const uint8_t* quantized, const float* scales, float* y,
                             const BlockQuantization& blocks, cudaStream_t stream);

}  // namespace librt::cuda
