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
  int bits;
  /// Of loops for 8 and for 4 bits.
  int kind() const noexcept { return bits == 4 ? 1 : 0; }
};

/// A row of k values quantized to 16 bits with a scale for each 32 of them.
struct SplitRow {
  int8_t* values;  ///< [2 k] bytes, in an order of the loops' own
  int32_t* start;  ///< [k/8]: -8 times the sum of eight, since weights -8..7 are stored as 0..15
  float* scale;    ///< [k/8]
  static constexpr int64_t kBytes = 3;  ///< per element
};

struct WeightQuantizedLoops {
  /// Columns [begin, end), of weights of 8 and of 4 bits.
  void (*weight_matmul[2])(const WeightMatmul& matmul, int64_t begin, int64_t end);
  /// y [n,k]: the weights of columns [begin, end) in f32.
  void (*widen_weights[2])(const WeightMatmul& matmul, float* y, int64_t begin, int64_t end);
  /// One row with 4-bit weights where k is a multiple of 128 and the group is 32, 64 or such a multiple: x
  /// [k] is split first. Null where f32 is as fast. split_row: false if x is not finite, which 16 bits cannot
  /// hold.
  bool (*split_row)(const float* x, int64_t k, const SplitRow& row);
  void (*weight_row)(const WeightMatmul& matmul, const SplitRow& row, float* y, int64_t begin, int64_t end);
  bool row_needs_dot_products;  ///< these two: Simd::dot_products
};
RT_DECLARE_LOOPS(WeightQuantizedLoops);

}  // namespace librt::cpu
