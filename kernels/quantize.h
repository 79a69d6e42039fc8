// QuantizeLinear, DequantizeLinear, Requantize, QuantizedAdd, NarrowFloat: elementwise.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"
#include "runtime/core/function.h"

namespace librt::cuda {

/// A tensor seen as [outer, extent, inner]; element (o, e, i) has scale
/// o * outer_stride + e / block * block_stride + i * inner_stride.
struct Scales {
  const void* scale = nullptr;
  const void* zero_point = nullptr;  ///< of the integer type; may be null
  int64_t extent = 1, inner = 1, block = 1;
  int64_t outer_stride = 0, block_stride = 0, inner_stride = 0;
};

/// f32, f16, bf16 with scales of the same type, or i32 with scales of f32, to i8, u8, i16, u16: round(x /
/// scale) + zero_point, ties to even, saturated; NaN as 0.
struct QuantizeArguments {
  const void* data = nullptr;
  void* result = nullptr;
  ElementType from = ElementType::F32, to = ElementType::U8;
  Scales scales;
  int64_t count = 0;
};
cudaError_t quantize(const QuantizeArguments& arguments, cudaStream_t stream);

/// i8, u8, i16, u16, i32 to f32, f16, bf16, with scales of one of these: (x - zero_point) * scale.
struct DequantizeArguments {
  const void* data = nullptr;
  void* result = nullptr;
  ElementType from = ElementType::U8, scale = ElementType::F32, to = ElementType::F32;
  Scales scales;
  int64_t count = 0;
};
cudaError_t dequantize(const DequantizeArguments& arguments, cudaStream_t stream);

/// The epilogue of i32 accumulators [.., channels]: r = activation(sum * scale + bias); for an integer result
/// round(r / y_scale) + y_zero, ties to even, saturated.
struct Requantization {
  const float *scale = nullptr, *bias = nullptr;  ///< [channels], or a scalar scale; bias may be null
  const float* y_scale = nullptr;
  const void* y_zero = nullptr;       ///< of the result's type; may be null
  ElementType to = ElementType::I32;  ///< f32, i8, u8; i32: the accumulators are stored unchanged
  FunctionCall activation;
  bool one_scale = false;
};

struct RequantizeArguments {
  const int32_t* sums = nullptr;
  void* result = nullptr;
  int64_t channels = 1, count = 0;
  Requantization requantization;
};
cudaError_t requantize(const RequantizeArguments& arguments, cudaStream_t stream);

/// Quantized i8 or u8 elements, each (code - zero) * scale.
struct QuantizedOperand {
  const void* data = nullptr;
  const float* scale = nullptr;
  const void* zero = nullptr;
  ElementType type = ElementType::U8;
};

/// round(activation(a + b) / y.scale) + y.zero, ties to even, saturated. The result may alias `a` or `b`.
struct QuantizedAddArguments {
  QuantizedOperand a, b, y;  ///< y.data is not read
  void* result = nullptr;
  FunctionCall activation;  ///< Identity, Relu or Clip
  int64_t count = 0;
};
cudaError_t quantized_add(const QuantizedAddArguments& x, cudaStream_t stream);

/// A narrow float format: the fraction is rounded to `mantissa` bits, ties to even.
struct NarrowFormat {
  int mantissa = 3;
  int exponent = -6;                  ///< of the smallest normal
  float largest = 448, beyond = 448;  ///< largest finite value, and the result of overflow
  bool nan = true, minus_zero = true;
};
cudaError_t narrow_float(const float* data, float* result, int64_t count, const NarrowFormat& format,
                         cudaStream_t stream);

}  // namespace librt::cuda
