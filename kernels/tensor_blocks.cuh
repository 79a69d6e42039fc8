// One launch over many tensors: each has thread blocks of its own, in the order of a table among the kernel's
// parameters.
//
// Knows: numbers of blocks. Must not know: what the tensors are.
#pragma once

#include "kernels/common.cuh"

namespace librt::cuda {

/// The tensor of a thread block, and the block's place among the blocks of that tensor.
struct TensorBlock {
  int tensor;
  unsigned block, blocks;
};

/// Of this thread block. Tensor i has the blocks from table.first_block[i] up to table.first_block[i + 1];
/// tensors: at least 1.
template <class Table>
RT_DEVICE TensorBlock tensor_block(const Table& table, int tensors) {
  int low = 0, high = tensors;  // first_block[low] <= blockIdx.x < first_block[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.first_block[middle] <= blockIdx.x ? low : high) = middle;
  }
  const unsigned first = table.first_block[low];
  return {low, blockIdx.x - first, table.first_block[low + 1] - first};
}

}  // namespace librt::cuda
