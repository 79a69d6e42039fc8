// Many f32 rows times weights of 8 or 4 bits, in integer arithmetic.
//
// A row is quantized to 16 bits in blocks along k with a scale each, q = 256 high + low, and with 8-bit dot
// products its block adds to 16 columns of a vector
//
//   y[row][column] += scale[row][block] scale[column][group] (256 sum(w high) + sum(w low))
//
// Error: 1.6e-5 of the largest of a block, as for one row. Weights stand in panels of kWeightColumns columns
// in L2, transposed from where they lie and used by many rows: 32 elements of k take 16 dot products and 5
// instructions for 16 columns, where f32 takes 32 multiply-adds and dequantizing.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

inline constexpr int64_t kWeightColumns = 32;

/// Rows quantized to 16 bits.
struct SplitRows {
  int8_t *high, *low;  ///< [rows, k]; for 4-bit weights the even elements of each 8 first, then the odd ones
  int32_t* start;      ///< [rows, k / block]: what storing weights 8 or 128 larger adds, negated
  float* scale;        ///< [rows, k / block]
  int64_t k, block;    ///< 16 or 32
};

/// The weights of some columns and where their results go.
struct WeightPanel {
  const int32_t* weights;  ///< [k bits / 32, kWeightColumns]: neighbours along k share an element
  const float* scale;      ///< [k / group, kWeightColumns]
  const float* bias;       ///< [columns], or null
  float* y;                ///< [rows, columns], rows are `stride` apart
  const void* next;        ///< as many bytes as the weights, to be fetched into the caches meanwhile, or null
  int64_t group, stride, columns;
};

/// For weights of 8 and of 4 bits; only on a CPU with Simd::dot_products, and null where no such CPU has the
/// instruction set.
struct WeightPanelLoops {
  /// Quantizes x [k] as row `row`. False if it is not finite, which 16 bits cannot hold.
  bool (*split_row[2])(const float* x, const SplitRows& rows, int64_t row);
  /// Rows [begin, end) of the results.
  void (*multiply[2])(const WeightPanel& panel, const SplitRows& rows, int64_t begin, int64_t end);
};
RT_DECLARE_LOOPS(WeightPanelLoops);

}  // namespace librt::cpu
