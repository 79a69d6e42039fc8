// One block per row reads the logits twice, for their maximum and for the sum of exponentials; then one block
// sums the rows' losses in a fixed order.
#include "kernels/loss.h"

#include <algorithm>

#include "kernels/index.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

constexpr int kMaxLossThreads = 256;

template <class T>
__global__ void __launch_bounds__(kMaxLossThreads)
    row_losses(const T* logits, Indices labels, float* losses, int64_t classes) {
  __shared__ float storage[kWarpSize];
  const T* row = logits + static_cast<int64_t>(blockIdx.x) * classes;
  float highest = -INFINITY;
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) highest = Maximum{}(highest, to_float(row[c]));
  highest = block_reduce(highest, Maximum{}, storage);
  float sum = 0;
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) sum += expf(to_float(row[c]) - highest);
  sum = block_sum(sum, storage);
  if (threadIdx.x == 0) {
    const int64_t label = labels[blockIdx.x];
    losses[blockIdx.x] = label >= 0 && label < classes ? logf(sum) - (to_float(row[label]) - highest) : 0.0f;
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxLossThreads) mean_loss(const float* losses, T* result, int64_t rows) {
  __shared__ float storage[kWarpSize];
  float sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += losses[i];
  sum = block_sum(sum, storage);
  if (threadIdx.x == 0) *result = from_float<T>(sum / static_cast<float>(rows));
}

unsigned threads_for(int64_t count) {
  return static_cast<unsigned>(
      std::clamp<int64_t>(ceil_div(count, kWarpSize) * kWarpSize, kWarpSize, kMaxLossThreads));
}

}  // namespace

cudaError_t cross_entropy(const CrossEntropyArguments& arguments, cudaStream_t stream) {
  return with_float(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const LaunchConfig rows{dim3(static_cast<unsigned>(arguments.rows)), dim3(threads_for(arguments.classes)),
                            0, stream};
    const cudaError_t error =
        launch(row_losses<T>, rows, static_cast<const T*>(arguments.logits),
               Indices{arguments.labels, arguments.wide_labels}, arguments.losses, arguments.classes);
    if (error != cudaSuccess) return error;
    return launch(mean_loss<T>, LaunchConfig{dim3(1), dim3(threads_for(arguments.rows)), 0, stream},
                  static_cast<const float*>(arguments.losses), static_cast<T*>(arguments.result),
                  arguments.rows);
  });
}

}  // namespace librt::cuda
