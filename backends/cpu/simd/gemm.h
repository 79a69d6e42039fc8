// GEMM on packed panels, with a tile of the result in registers; and depthwise convolution of one point.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct GemmLoops {
  /// Largest tile of all instruction sets, for buffers.
  static constexpr int64_t kMostRows = 14, kMostColumns = 32;

  int64_t rows, columns;  ///< of a tile: those of a panel of A and of a panel of B

  /// One tile. a is [k][rows], b [k][columns]; y += a' b, or y = a' b where it does not accumulate. Writes
  /// only the tile's first m rows and n columns, which are `stride` apart in y.
  void (*tile)(const float* a, const float* b, int64_t k, float* y, int64_t stride, int64_t m, int64_t n,
               bool accumulate);
  /// A whole tile's rows of a in place, a_stride floats apart, instead of a panel; null where there is none.
  void (*rows_tile)(const float* a, int64_t a_stride, const float* b, int64_t k, float* y, int64_t stride,
                    int64_t n, bool accumulate);
  /// A panel [k][width] from `width` rows of k floats each: to[i * width + j] = x[j][i].
  void (*gather)(const float* const* x, int64_t k, float* to, int64_t width);
  /// A panel of consecutive columns: to[i * width + j] = x[i * stride + j], and 0 for count <= j < width.
  void (*copy)(const float* x, int64_t stride, int64_t count, int64_t k, float* to, int64_t width);

  /// y[c] = sum over taps of x[tap][c] weight[tap][c], c < channels; x and weight are lists of addresses.
  void (*depthwise)(const float* const* x, const float* const* weight, int64_t taps, int64_t channels,
                    float* y);
  /// sums[c] += x[c] y[c].
  void (*multiply_add)(const float* x, const float* y, float* sums, int64_t channels);
};
RT_DECLARE_LOOPS(GemmLoops);

}  // namespace librt::cpu
