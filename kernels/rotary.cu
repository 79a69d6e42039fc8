#include "kernels/rotary.h"

#include "kernels/common.cuh"

namespace librt::cuda {
namespace {

/// One thread per pair, and one per element after the pairs.
__global__ void __launch_bounds__(kElementwiseThreads) rotate(RotaryArguments to) {
  const int64_t items = to.width - to.pairs, i = global_index();
  if (i >= to.rows * items) return;
  const int64_t item = i % items, row = i / items, base = row * to.width;
  if (item >= to.pairs) {
    to.result[base + to.pairs + item] = to.data[base + to.pairs + item];
    return;
  }
  const int64_t batch = to.table_per_batch ? row / (to.heads * to.queries) : 0;
  const int64_t at = (batch * to.queries + row % to.queries) * to.pairs + item;
  const int64_t first = base + (to.interleaved ? 2 * item : item),
                second = first + (to.interleaved ? 1 : to.pairs);
  const float a = to.data[first], b = to.data[second], c = to.cosines[at], s = to.sines[at];
  to.result[first] = a * c - b * s;
  to.result[second] = a * s + b * c;
}

}  // namespace

cudaError_t rotary(const RotaryArguments& arguments, cudaStream_t stream) {
  return launch(rotate, launch_each(arguments.rows * (arguments.width - arguments.pairs), stream), arguments);
}

}  // namespace librt::cuda
