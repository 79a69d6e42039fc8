// Softmax: y = exp(x - max) / sum exp(x - max), or its logarithm x - max - log(sum). Contiguous rows: one
// warp or block per row (row.cuh); other axes: one thread per column, so that reads are coalesced.
#include "kernels/softmax.h"

#include "kernels/row.cuh"

namespace librt::cuda {
namespace {

constexpr int kColumnThreads = 256;

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

template <class Row, class T>
__global__ void __launch_bounds__(kRowThreads, 3)
    softmax_rows(const T* x, T* y, int64_t rows, int64_t extent, bool log_softmax) {
  using Value = Wide<T>;
  __shared__ Value shared[kWarpSize];
  Row row(x, rows, extent);
  Value most = static_cast<Value>(-INFINITY);
  row.each([&](Value value) { most = Maximum{}(most, value); });
  most = Row::combined(most, Maximum{}, shared);
  Value sum = 0;
  row.each([&](Value& value) {
    const Value power = exponential(value - most);
    sum += power;
    if (Row::kKept && !log_softmax) value = power;
  });
  sum = Row::combined(sum, Sum{}, shared);
  const Value inverse = Value{1} / sum, log_sum = logarithm(sum);
  row.store(y, [&](int64_t, auto& values) {
    for (Value& value : values) {
      if (log_softmax)
        value = value - most - log_sum;
      else
        value = (Row::kKept ? value : exponential(value - most)) * inverse;
    }
  });
}

template <class T>
__global__ void __launch_bounds__(kColumnThreads)
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

template <class V>
RT_DEVICE V gradient_of(V y, V g, V sum, bool log_softmax) {
  return log_softmax ? g - exponential(y) * sum : y * (g - sum);
}

template <class Row, class T>
__global__ void __launch_bounds__(kRowThreads, 2)
    softmax_grad_rows(const T* y, const T* g, T* grad, int64_t rows, int64_t extent, bool log_softmax) {
  using Value = Wide<T>;
  constexpr int kWidth = Row::kElements;
  __shared__ Value shared[kWarpSize];
  Row row(y, rows, extent);
  const T* from = g + row.offset();
  Value sum = 0;
  row.each_group([&](int64_t column, Value(&values)[kWidth]) {
    const auto gradients = load_vector<kWidth>(from + column);
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i)
      sum += log_softmax ? widen(gradients[i]) : widen(gradients[i]) * values[i];
  });
  sum = Row::combined(sum, Sum{}, shared);
  row.store(grad, [&](int64_t column, auto& values) {
    const auto gradients = load_vector<kWidth>(from + column);
    RT_UNROLL
    for (int i = 0; i < kWidth; ++i)
      values[i] = gradient_of(values[i], widen(gradients[i]), sum, log_softmax);
  });
}

template <class T>
__global__ void __launch_bounds__(kColumnThreads)
    softmax_grad_columns(const T* y, const T* g, T* grad, int64_t columns, int64_t extent, int64_t inner,
                         bool log_softmax) {
  using Value = Wide<T>;
  const int64_t column = global_index();
  if (column >= columns) return;
  const int64_t first = column / inner * extent * inner + column % inner, last = first + extent * inner;
  Value sum = 0;
  for (int64_t i = first; i < last; i += inner) sum += log_softmax ? widen(g[i]) : widen(g[i]) * widen(y[i]);
  for (int64_t i = first; i < last; i += inner)
    grad[i] = narrow<T>(gradient_of(widen(y[i]), widen(g[i]), sum, log_softmax));
}

}  // namespace

cudaError_t softmax_grad(const SoftmaxArguments& a, const void* grad_y, cudaStream_t stream) {
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t rows = a.extent == 0 ? 0 : a.outer * a.inner;
    const auto *y = static_cast<const T*>(a.x), *g = static_cast<const T*>(grad_y);
    auto* grad = static_cast<T*>(a.y);
    if (a.inner > 1)
      return launch(softmax_grad_columns<T>, launch_each(rows, stream, kColumnThreads), y, g, grad, rows,
                    a.extent, a.inner, a.logarithm);
    return launch_rows<T>(rows, a.extent, stream, [&](auto row, const LaunchConfig& config) {
      return launch(softmax_grad_rows<typename decltype(row)::type, T>, config, y, g, grad, rows, a.extent,
                    a.logarithm);
    });
  };
  return a.type == ElementType::F64 ? run(TypeTag<double>{}) : with_float(a.type, run);
}

cudaError_t softmax(const SoftmaxArguments& a, cudaStream_t stream) {
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t rows = a.extent == 0 ? 0 : a.outer * a.inner;
    const auto* x = static_cast<const T*>(a.x);
    auto* y = static_cast<T*>(a.y);
    if (a.inner > 1)
      return launch(softmax_columns<T>, launch_each(rows, stream, kColumnThreads), x, y, rows, a.extent,
                    a.inner, a.logarithm);
    return launch_rows<T>(rows, a.extent, stream, [&](auto row, const LaunchConfig& config) {
      return launch(softmax_rows<typename decltype(row)::type, T>, config, x, y, rows, a.extent, a.logarithm);
    });
  };
  return a.type == ElementType::F64 ? run(TypeTag<double>{}) : with_float(a.type, run);
}

}  // namespace librt::cuda
