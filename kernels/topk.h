// TopK: the entries that sort_rows put first, as values and positions.
#pragma once

#include "kernels/sort.h"

namespace rt::cuda {

struct TopKArguments {
  const void* data = nullptr;
  void* values = nullptr;        ///< [rows / inner, kept, inner]
  int64_t* positions = nullptr;  ///< the same shape
  int unit = 4;                  ///< bytes of a number
  SortRows rows;
};

cudaError_t topk(const TopKArguments& arguments, const SortedRows& sorted, cudaStream_t stream);

}  // namespace rt::cuda
