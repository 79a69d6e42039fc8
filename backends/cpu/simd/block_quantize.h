// Codebook quantization and dequantization.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct BlockQuantizeLoops {
  /// The largest |x[i]|, NaN where one is NaN; 0 without any.
  float (*largest_magnitude)(const float* x, int64_t n);
  /// Quantizes x to how many of 255 ascending thresholds it reaches; keep_positive: at least 1 where x > 0.
  /// `tree` times the scale is the binary search tree of the thresholds: [1] is the root, the children of [k]
  /// are [2 k] for values that do not reach it and [2 k + 1] for those that do.
  void (*quantize_block)(const float* x, const float* tree, float scale, uint8_t* codes, int64_t n,
                         bool keep_positive);
  /// y = codebook[code] scale, with a codebook of 256 values
  void (*dequantize_block)(const uint8_t* codes, const float* codebook, float scale, float* y, int64_t n);
};
RT_DECLARE_LOOPS(BlockQuantizeLoops);

}  // namespace librt::cpu
