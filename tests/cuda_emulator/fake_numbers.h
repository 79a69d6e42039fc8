// Element access and number formats of device memory, for the libraries of the emulated device.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace cuda_emulator {

inline size_t size_of(cudaDataType_t type) {
  return type == CUDA_R_32F || type == CUDA_R_32I ? 4 : type == CUDA_R_8I ? 1 : 2;
}
inline float load(const void* from, cudaDataType_t type, int64_t at) {
  switch (type) {
    case CUDA_R_16F: return __half2float(static_cast<const __half*>(from)[at]);
    case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]);
    case CUDA_R_8I: return static_cast<float>(static_cast<const int8_t*>(from)[at]);
    default: return static_cast<const float*>(from)[at];
  }
}
inline void store(void* to, cudaDataType_t type, int64_t at, double value) {
  const auto number = static_cast<float>(value);
  switch (type) {
    case CUDA_R_16F: static_cast<__half*>(to)[at] = __float2half(number); break;
    case CUDA_R_16BF: static_cast<__nv_bfloat16*>(to)[at] = __float2bfloat16(number); break;
    case CUDA_R_32I: static_cast<int32_t*>(to)[at] = static_cast<int32_t>(value); break;
    default: static_cast<float*>(to)[at] = number;
  }
}

/// Rounds to the nearest value with 10 mantissa bits.
inline float tf32(float x) {
  if (!std::isfinite(x)) return x;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & ~0x1fffu);
}

inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

}  // namespace cuda_emulator
