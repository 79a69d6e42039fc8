// Quantization and dequantization of integers, sums and dot products of 8-bit integers.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// The integer types of quantized values.
enum class IntegerCode : uint8_t { I8, U8, I16, U16, I32, Count };

/// The parameters of a float format of few bits.
struct FloatFormat {
  int mantissa;  ///< fraction bits
  int exponent;  ///< least exponent of a normal number
  float largest;
  float beyond;  ///< result for larger magnitudes
  float nan;     ///< result for NaN
  bool minus_zero;
};

struct QuantizeLoops {
  /// y = saturate(round(x / scale) + zero), of f32 and of i32 accumulators; no I32 result. zero may be null;
  /// with `each`, scale, inverse and zero advance with x. inverse: 1 / scale, all of them normal floats, or
  /// null.
  using Quantize = void (*)(const void* x, const float* scale, const float* inverse, const void* zero,
                            void* y, int64_t n, bool each);
  Quantize quantize[static_cast<int>(IntegerCode::Count)];
  Quantize quantize_sums[static_cast<int>(IntegerCode::Count)];
  /// x = (y - zero) scale
  void (*dequantize[static_cast<int>(IntegerCode::Count)])(const void* x, const float* scale,
                                                           const void* zero, float* y, int64_t n, bool each);
  void (*narrow_float)(const float* x, float* y, int64_t n, const FloatFormat& format);
  // Of 8-bit integers, [0] signed and [1] unsigned; sums wrap in 32 bits.
  int32_t (*sum_row[2])(const void* x, int64_t n);
  /// y += factor x
  void (*multiply_add[2])(int32_t* y, const void* x, int32_t factor, int64_t n);
  /// The sum of (x - x_zero) (w - w_zero), by the types of x and of w.
  int32_t (*dot[2][2])(const void* x, const void* w, int32_t x_zero, int32_t w_zero, int64_t n);
  /// y += factor_a a + factor_b b
  void (*combine_integers)(int32_t* y, const int32_t* a, int32_t factor_a, const int32_t* b, int32_t factor_b,
                           int64_t n);
  /// y[i] = the sum of x[i width + c] over c < width
  void (*sum_runs[2])(const void* x, int32_t* y, int64_t n, int64_t width);
  /// y[r n + i] += a[i] + b[i] factors[r], r < rows
  void (*add_outer)(int32_t* y, const int32_t* a, const int32_t* b, const int32_t* factors, int64_t rows,
                    int64_t n);
  /// y = x - 128
  void (*flip_signs)(const uint8_t* x, int8_t* y, int64_t n);
};
RT_DECLARE_LOOPS(QuantizeLoops);

}  // namespace librt::cpu
