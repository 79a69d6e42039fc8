// Accumulation of rows, and vector updates.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

enum class ReduceFunction : uint8_t { Sum, Max, Min, Prod, Count };

struct RowLoops {
  /// y[i] = y[i] op x[i]
  void (*accumulate[static_cast<int>(ReduceFunction::Count)])(float* y, const float* x, int64_t n);
  /// y[i] = sum over k < count of weight[k] x[k][i]
  void (*weighted_sum)(const float* const* x, const float* weight, int64_t count, float* y, int64_t n);
  /// y = y + a x
  void (*axpy)(float* y, const float* x, float a, int64_t n);
  /// y = a x
  void (*scale)(float* y, const float* x, float a, int64_t n);
  /// y[i] = x[i] scale[i] + shift[i]
  void (*scale_shift)(const float* x, float* y, const float* scale, const float* shift, int64_t n);
  /// sum_g[i] += g[i]; sum_gx[i] += g[i] (x[i] - mean[i])
  void (*accumulate_products)(float* sum_g, float* sum_gx, const float* g, const float* x, const float* mean,
                              int64_t n);
  /// y[i] = a[i] g[i] + b[i] x[i] + c[i]
  void (*combine)(float* y, const float* g, const float* x, const float* a, const float* b, const float* c,
                  int64_t n);
};
RT_DECLARE_LOOPS(RowLoops);

}  // namespace librt::cpu
