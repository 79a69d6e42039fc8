// Split-k of matmuls.
#include "kernels/gemm.h"

#include <algorithm>

#include "kernels/common.cuh"

namespace librt::cuda {

size_t gemm_partial_bytes(const Gemm& gemm) {
  if (gemm.splits <= 1) return 0;
  return static_cast<size_t>(gemm.splits) * static_cast<size_t>(gemm.matrices) * static_cast<size_t>(gemm.m) *
         static_cast<size_t>(gemm.n) * sizeof(double);
}

int gemm_splits(const Gemm& gemm, int rows, int columns, int multiprocessors) {
  const int64_t tiles =
      std::max<int64_t>(ceil_div(gemm.m, rows) * ceil_div(gemm.n, columns) * gemm.matrices, 1);
  // Two blocks per multiprocessor; a split shorter than 256 does not pay for its partial result.
  const int64_t wanted = 2 * static_cast<int64_t>(multiprocessors) / tiles;
  return static_cast<int>(std::clamp<int64_t>(std::min<int64_t>(wanted, gemm.k / 256), 1, 256));
}

}  // namespace librt::cuda
