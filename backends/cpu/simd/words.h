// f32 quantized to 16 bits in blocks, to be multiplied in integers: an error of 1.6e-5 of the largest element
// of a block. Only included by the sources of this directory.
#pragma once

#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {

/// Up to 32 neighbouring elements: q scale.
struct WordBlock {
  static constexpr int64_t kMost = 32;
  int16_t q[kMost];
  float scale;
};
/// zeros becomes NaN if an element is not finite; q is any then.
RT_INLINE WordBlock quantize_words(const float* x, int64_t n, float& zeros) {
  constexpr float kLargest = 32639;  // 256 * 127 + 127: two bytes with a sign each hold it
  float most = 0, sum = 0;
#pragma omp simd reduction(max : most) reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = absolute(x[i]);
    most = magnitude > most ? magnitude : most;
    sum += x[i] * 0.0f;
  }
  zeros += sum;
  const float factor = most < 1e-30f ? 0.0f : kLargest / most;
  WordBlock block;
  block.scale = most / kLargest;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    block.q[i] = static_cast<int16_t>(float_to_bits(x[i] * factor + kRounder) - float_to_bits(kRounder));
  return block;
}
/// q = 256 high + low
RT_INLINE void split_bytes(const WordBlock& block, int64_t n, int8_t* high, int8_t* low) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    high[i] = static_cast<int8_t>((block.q[i] + 128) >> 8);
    low[i] = static_cast<int8_t>(block.q[i]);
  }
}
RT_INLINE int32_t sum_words(const int16_t* q, int64_t n) {
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += q[i];
  return sum;
}

}  // namespace librt::cpu::RT_SIMD_ISA
