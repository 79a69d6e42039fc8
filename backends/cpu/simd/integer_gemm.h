// GEMM of 8-bit integers on packed panels, by instructions that sum the products of four or two pairs in 32
// bits; and a step of depthwise convolution.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// The tile of one kind of instruction, y = a b, exact modulo 2^32.
struct IntegerTile {
  int64_t rows, columns;  ///< those of a tile of a and of a panel of b
  int64_t group;          ///< neighbouring steps of k in a panel: 4, or 2
  bool wide_a;            ///< a is rows of i16 in place, which take both signs, instead of panels of bytes
  bool a_signed;          ///< what bytes of a are taken as; b is always signed

  /// a is a panel [groups][rows][group], or rows [groups][group] that are a_stride bytes apart, of which as
  /// many as a tile has may be read whatever m is; b is a panel [groups][columns][group]. Writes only the
  /// tile's first m rows and n columns, which are `stride` apart in y. Null where there are no such
  /// instructions.
  void (*run)(const uint8_t* a, int64_t a_stride, const uint8_t* b, int64_t groups, int32_t* y,
              int64_t stride, int64_t m, int64_t n);
};

struct IntegerGemmLoops {
  /// Largest tile of all instruction sets, for buffers.
  static constexpr int64_t kMostRows = 14, kMostColumns = 32;

  IntegerTile dot;         ///< only on a CPU with Simd::dot_products
  IntegerTile pairs;       ///< on every CPU
  IntegerTile wide_pairs;  ///< b in i16 as well; no sum of two products may leave 32 bits
  /// y = x, by whether x is unsigned.
  void (*widen[2])(const uint8_t* x, int16_t* y, int64_t n);
  /// y = x with flipped highest bits: 128 is added to signed integers, subtracted from unsigned ones.
  void (*flip)(const uint8_t* x, uint8_t* y, int64_t n);
  /// y[c] += (x[c] - x_zero) (w[c] - w_zeros[c]), by whether x and w are unsigned; sums wrap.
  void (*multiply_add[2][2])(const void* x, const void* w, int32_t x_zero, const int32_t* w_zeros, int32_t* y,
                             int64_t channels);
  /// y[c] = the sum of x[t][c] w[t / 2][c][t % 2] over t < 2 pairs, by whether x is unsigned; sums wrap.
  void (*sum_taps[2])(const uint8_t* const* x, const int16_t* w, int64_t pairs, int32_t* y, int64_t channels);
};
RT_DECLARE_LOOPS(IntegerGemmLoops);

}  // namespace librt::cpu
