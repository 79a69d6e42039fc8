// Split-k of matmuls.
#include "kernels/product.h"

#include <algorithm>

#include "kernels/common.cuh"

namespace rt::cuda {

size_t product_partial_bytes(const Product& product) {
  if (product.splits <= 1) return 0;
  return static_cast<size_t>(product.splits) * static_cast<size_t>(product.matrices) *
         static_cast<size_t>(product.m) * static_cast<size_t>(product.n) * sizeof(double);
}

int product_splits(const Product& product, int rows, int columns, int multiprocessors) {
  const int64_t tiles =
      std::max<int64_t>(ceil_div(product.m, rows) * ceil_div(product.n, columns) * product.matrices, 1);
  // Two blocks per multiprocessor; a split shorter than 256 does not pay for its partial result.
  const int64_t wanted = 2 * static_cast<int64_t>(multiprocessors) / tiles;
  return static_cast<int>(std::clamp<int64_t>(std::min<int64_t>(wanted, product.k / 256), 1, 256));
}

}  // namespace rt::cuda
