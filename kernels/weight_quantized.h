// WeightQuantizedMatMul: launcher arguments.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace librt::cuda {

/// y [rows,n] = x [rows,k] w + bias in f32; 8 bits: weight i8 [n,k]; 4 bits: u8 [n,k/2], even k in the low
/// nibble, both with zero point 8. scale [n,k/group]; group: a multiple of the weights in 4 bytes. bias [n]
/// may be null.
struct WeightQuantizedArguments {
  const float* x = nullptr;
  const void* weight = nullptr;
  const float *scale = nullptr, *bias = nullptr;
  float* y = nullptr;
  int64_t rows = 0, n = 0, k = 0, group = 0;
  int bits = 8;
};
/// At most kMaxWeightRows rows, 2^31 - 1 columns, k below 2^32.
cudaError_t weight_quantized(const WeightQuantizedArguments& arguments, cudaStream_t stream);
inline constexpr int64_t kMaxWeightRows = 65535 * 8;

}  // namespace librt::cuda
