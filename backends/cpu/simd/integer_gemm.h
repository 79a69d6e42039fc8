// GEMM of 8-bit integers on packed panels, by instructions that add the products of four pairs to a sum in 32
// bits; and a step of depthwise convolution.
#pragma once

#include <cstdint>

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct IntegerGemmLoops {
  /// Largest tile of all instruction sets, for buffers.
  static constexpr int64_t kMostRows = 14, kMostColumns = 32;

  int64_t rows, columns;  ///< of a tile: those of a panel of A and of a panel of B
  bool a_signed;          ///< what the tile takes a as; b is signed

  /// One tile, y = a b, exact modulo 2^32. a is [quads][rows][4] and b [quads][columns][4], each of k / 4
  /// quads of neighbouring steps of k. Writes only the tile's first m rows and n columns, which are `stride`
  /// apart in y. Only on a CPU with Simd::dot_products; null where no instruction does it.
  void (*tile)(const uint8_t* a, const uint8_t* b, int64_t quads, int32_t* y, int64_t stride, int64_t m,
               int64_t n);
  /// y = x with flipped highest bits: 128 is added to signed integers, subtracted from unsigned ones.
  void (*flip)(const uint8_t* x, uint8_t* y, int64_t n);
  /// y[c] += (x[c] - x_zero) (w[c] - w_zeros[c]), by whether x and w are unsigned; sums wrap.
  void (*multiply_add[2][2])(const void* x, const void* w, int32_t x_zero, const int32_t* w_zeros, int32_t* y,
                             int64_t channels);
};
RT_DECLARE_LOOPS(IntegerGemmLoops);

}  // namespace librt::cpu
