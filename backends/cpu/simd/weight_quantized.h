// f32 rows times weights of 8 or 4 bits.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// y [rows,n] = x [rows,k] times the transposed weight [n,k] of 8 or 4 bits, in groups along k with a scale
/// each.
struct WeightMatmul {
  const float* x;  ///< for 4 bits: the even elements of each row, then the odd ones
  const uint8_t* weight;
  const float* scale;
  float* y;
  int64_t rows, n, k, group;
};

/// A row of k values quantized to 16 bits, q scale with q = 256 high + low, and a scale for each 32 of them.
/// The even elements of the row are stored apart from the odd ones.
struct SplitRow {
  int8_t *high[2], *low[2];  ///< even, odd: [k/2]
  int32_t* start;            ///< [k/8]: -8 times the sum of eight q, since weights -8..7 are stored as 0..15
  float* scale;              ///< [k/8]
  static constexpr int64_t kBytes = 3;  ///< per element
};

struct WeightQuantizedLoops {
  /// Columns [begin, end), of weights of 8 and of 4 bits.
  void (*weight_matmul[2])(const WeightMatmul& matmul, int64_t begin, int64_t end);
  /// y [n,k]: the weights of columns [begin, end) in f32.
  void (*widen_weights[2])(const WeightMatmul& matmul, float* y, int64_t begin, int64_t end);
  /// One row with 4-bit weights where k is a multiple of 128 and the group is 32, 64 or such a multiple: x,
  /// as WeightMatmul has it, is split first. Only on a CPU with Simd::dot_products; null where no
  /// such CPU has the instruction set. split_row: false if x is not finite, which 16 bits cannot hold.
  bool (*split_row)(const float* x, int64_t k, const SplitRow& row);
  void (*weight_row)(const WeightMatmul& matmul, const SplitRow& row, float* y, int64_t begin, int64_t end);
};
RT_DECLARE_LOOPS(WeightQuantizedLoops);

}  // namespace librt::cpu
