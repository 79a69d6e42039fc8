// Matmul of f64, with a tile of the result in registers.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

struct WideMatMulLoops {
  int64_t rows, columns;  ///< of a tile

  /// y[i * stride + j] = sum over p < k of a[i * a_row + p * a_step] b[p * columns + j], i < m <= rows, j < n
  /// <= columns; added to y where it accumulates.
  void (*tile)(const double* a, int64_t a_row, int64_t a_step, const double* b, int64_t k, double* y,
               int64_t stride, int64_t m, int64_t n, bool accumulate);
};
RT_DECLARE_LOOPS(WideMatMulLoops);

}  // namespace librt::cpu
