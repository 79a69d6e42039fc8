// TopK: the first entries of sort_rows, as values and positions.
#pragma once

#include "kernels/sort.h"

namespace librt::cuda {

struct TopKArguments {
  const void* data = nullptr;
  void* values = nullptr;        ///< [rows / inner, kept, inner]
  int64_t* positions = nullptr;  ///< the same shape
  int unit = 4;                  ///< bytes of an element
  SortRows rows;
};

cudaError_t topk(const TopKArguments& arguments, const SortedRows& sorted, cudaStream_t stream);

}  // namespace librt::cuda
