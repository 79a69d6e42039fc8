// Operators that stay in 8 bits between matmuls.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// a factor_a + b factor_b + offset, within [low, high].
struct QuantizedSum {
  float factor_a, factor_b, offset, low, high;
};

/// y / scale + zero, rounded, of y within [low, high]; inverse: 1 / scale, both normal, and low and high are
/// finite and at most 2^18 scales from 0.
struct Requantized {
  float low, high, scale, inverse;
  int32_t zero;
};

struct QuantizedLoops {
  /// y = round(a factor_a + b factor_b + offset) within [low, high]; by the types of a, b and y.
  void (*add_quantized[2][2][2])(const void* a, const void* b, void* y, int64_t n, const QuantizedSum& sum);
  /// y = (sums - less) scale + bias; the difference wraps in 32 bits.
  void (*scale_sums)(const int32_t* sums, const int32_t* less, const float* scale, const float* bias,
                     float* y, int64_t n);
  /// scale_sums() and Requantized in one pass, by whether y is unsigned; no sum times its scale may be NaN.
  /// Null without AVX2.
  void (*requantize[2])(const int32_t* sums, const int32_t* less, const float* scale, const float* bias,
                        const Requantized& last, void* y, int64_t n);
  /// y = max(y, x)
  void (*max_i8)(int8_t* y, const int8_t* x, int64_t n);
  void (*max_u8)(uint8_t* y, const uint8_t* x, int64_t n);
  /// y[i] = table[x[i]], of 256 elements of 1, 2, 4, 8 bytes.
  void (*look_up[4])(const uint8_t* x, const void* table, void* y, int64_t n);
};
RT_DECLARE_LOOPS(QuantizedLoops);

}  // namespace librt::cpu
