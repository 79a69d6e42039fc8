// Softmax: y = exp(x - max) / sum exp(x - max), or its logarithm x - max - log(sum). Rows of neighbouring
// elements by a warp or a block; along other axes one thread per column, so that neighbours read neighbours.
#include "kernels/softmax.h"

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"

namespace rt::cuda {
namespace {

constexpr int kBlock = 256;

RT_DEVICE float exponential(float x) {
  return expf(x);
}
RT_DEVICE double exponential(double x) {
  return exp(x);
}
RT_DEVICE float logarithm(float x) {
  return logf(x);
}
RT_DEVICE double logarithm(double x) {
  return log(x);
}

template <class T>
RT_DEVICE T softmax_of(Wide<T> x, Wide<T> most, Wide<T> sum, bool log_softmax) {
  return narrow<T>(log_softmax ? x - most - logarithm(sum) : exponential(x - most) / sum);
}

template <class T, int kThreads>
__global__ void __launch_bounds__(kBlock)
    softmax_rows(const T* x, T* y, int64_t rows, int64_t extent, bool log_softmax) {
  using Value = Wide<T>;
  __shared__ Value shared[kBlock / 32];
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (kBlock / kThreads) + static_cast<int>(threadIdx.x) / kThreads;
  const int64_t count = row < rows ? extent : 0;
  const T* from = x + (row < rows ? row * extent : 0);
  T* to = y + (row < rows ? row * extent : 0);
  const auto combined = [&](Value value, auto combine) {
    if constexpr (kThreads == kBlock)
      return block_reduce(value, combine, shared);
    else
      return warp_reduce(value, combine);
  };
  Value most = static_cast<Value>(-INFINITY);
  for (int64_t i = lane; i < count; i += kThreads) most = Maximum{}(most, widen(from[i]));
  most = combined(most, Maximum{});
  Value sum = 0;
  for (int64_t i = lane; i < count; i += kThreads) sum += exponential(widen(from[i]) - most);
  sum = combined(sum, Sum{});
  for (int64_t i = lane; i < count; i += kThreads)
    to[i] = softmax_of<T>(widen(from[i]), most, sum, log_softmax);
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_columns(const T* x, T* y, int64_t columns, int64_t extent, int64_t inner, bool log_softmax) {
  using Value = Wide<T>;
  const int64_t column = global_index();
  if (column >= columns) return;
  const int64_t first = column / inner * extent * inner + column % inner;
  const T* from = x + first;
  T* to = y + first;
  Value most = static_cast<Value>(-INFINITY);
  for (int64_t i = 0; i < extent; ++i) most = Maximum{}(most, widen(from[i * inner]));
  Value sum = 0;
  for (int64_t i = 0; i < extent; ++i) sum += exponential(widen(from[i * inner]) - most);
  for (int64_t i = 0; i < extent; ++i)
    to[i * inner] = softmax_of<T>(widen(from[i * inner]), most, sum, log_softmax);
}

}  // namespace

cudaError_t softmax(const SoftmaxArguments& a, cudaStream_t stream) {
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t rows = a.extent == 0 ? 0 : a.outer * a.inner;
    const auto* x = static_cast<const T*>(a.x);
    auto* y = static_cast<T*>(a.y);
    if (a.inner > 1)
      return launch(softmax_columns<T>, launch_each(rows, stream, kBlock), x, y, rows, a.extent, a.inner,
                    a.logarithm);
    if (a.extent <= 1024)
      return launch(softmax_rows<T, 32>, launch_each(rows * 32, stream, kBlock), x, y, rows, a.extent,
                    a.logarithm);
    return launch(softmax_rows<T, kBlock>, launch_each(rows * kBlock, stream, kBlock), x, y, rows, a.extent,
                  a.logarithm);
  };
  return a.type == ElementType::F64 ? run(TypeTag<double>{}) : with_float(a.type, run);
}

}  // namespace rt::cuda
