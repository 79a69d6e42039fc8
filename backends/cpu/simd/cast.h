// Casts between f32 and f16, bf16 and short integers.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct CastLoops {
  void (*f16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_f16)(const float* x, uint16_t* y, int64_t n);
  void (*bf16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_bf16)(const float* x, uint16_t* y, int64_t n);
  /// Toward zero, saturated, NaN to 0.
  void (*f32_to_i8)(const float* x, int8_t* y, int64_t n);
  void (*f32_to_u8)(const float* x, uint8_t* y, int64_t n);
  void (*f32_to_i16)(const float* x, int16_t* y, int64_t n);
  void (*f32_to_u16)(const float* x, uint16_t* y, int64_t n);
};
RT_DECLARE_LOOPS(CastLoops);

}  // namespace librt::cpu
