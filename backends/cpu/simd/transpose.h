// Matrix transpose for every element size, and copies with non-temporal stores.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// In bytes.
struct RunStrides {
  int64_t run, row;
};

struct TransposeLoops {
  /// y[j * y_stride + i] = x[i * x_stride + j] for i < rows, j < columns, of elements of 1, 2, 4, 8 bytes.
  /// past_caches: y is too large for them and is written with non-temporal stores.
  void (*transpose[4])(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows,
                       int64_t columns, bool past_caches);
  /// y[r to.row + k to.run + i] = x[r from.row + k from.run + i] for i < bytes, k < count, r < rows.
  void (*copy_runs)(const void* x, RunStrides from, void* y, RunStrides to, int64_t bytes, int64_t count,
                    int64_t rows);
  /// Copies with non-temporal stores. Other threads may read y after finish_streams().
  void (*stream_copy)(const void* x, void* y, int64_t bytes);
  void (*finish_streams)();
};
RT_DECLARE_LOOPS(TransposeLoops);

}  // namespace librt::cpu
