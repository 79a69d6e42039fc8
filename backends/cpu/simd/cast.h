// Casts between the number types that models hold much of.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// n elements, of types that the loop's name says.
using CastLoop = void (*)(const void* x, void* y, int64_t n);

struct CastLoops {
  void (*f16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_f16)(const float* x, uint16_t* y, int64_t n);
  void (*bf16_to_f32)(const uint16_t* x, float* y, int64_t n);
  void (*f32_to_bf16)(const float* x, uint16_t* y, int64_t n);
  /// From floats to integers toward zero, saturated, NaN to 0; between integers modulo 2^bits; to bool
  /// whether it is not 0, and of bool likewise.
  CastLoop f32_to_i8, f32_to_u8, f32_to_i16, f32_to_u16, f32_to_i32, f32_to_i64, f32_to_bool, f32_to_f64;
  CastLoop f64_to_i8, f64_to_u8, f64_to_i32, f64_to_i64, f64_to_bool, f64_to_f32;
  CastLoop i64_to_i8, i64_to_u8, i64_to_i32, i64_to_bool, i64_to_f32, i64_to_f64;
  CastLoop i32_to_i64, i32_to_bool, i32_to_f32, i32_to_f64;
  CastLoop u8_to_i64, u8_to_f32, bool_to_i64, bool_to_i32, bool_to_f32;
};
RT_DECLARE_LOOPS(CastLoops);

}  // namespace librt::cpu
