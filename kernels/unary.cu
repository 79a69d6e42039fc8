// Elementwise functions of one operand: 16 bytes of elements per thread; f16 and bf16 are computed in f32.
// The function is uniform over the grid and selected at run time: one kernel per element type.
#include "kernels/unary.h"

#include <cmath>

#include "kernels/functions.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    unary_kernel(Function function, const T* x, T* y, int64_t count, Wide<T> alpha, Wide<T> beta) {
  constexpr int kWidth = kVectorWidth<T>;
  const int64_t first = global_index() * kWidth;
  if (first >= count) return;
  Vector<T, kWidth> values = load_before<kWidth>(x, first, count);
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    if constexpr (std::is_integral_v<Wide<T>>)
      values[i] = integer_function_value<T>(function, values[i], static_cast<T>(alpha), static_cast<T>(beta));
    else
      values[i] = narrow<T>(function_value(function, widen(values[i]), alpha, beta));
  }
  store_before(y, values, first, count);
}

/// The bounds of Clip for integers: rounded inwards, then limited to the range of T.
template <class T>
T integer_bound(double bound) {
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
  if (!(bound > kLow)) return std::numeric_limits<T>::min();
  if (bound >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(bound);
}

}  // namespace

cudaError_t unary(const UnaryArguments& a, cudaStream_t stream) {
  return with_number(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = Wide<T>;
    W alpha{}, beta{};
    if constexpr (std::is_integral_v<W>) {
      alpha = integer_bound<T>(std::ceil(a.call.alpha));
      beta = integer_bound<T>(std::floor(a.call.beta));
    } else {
      alpha = static_cast<W>(a.call.alpha);
      beta = static_cast<W>(a.call.beta);
    }
    return launch(unary_kernel<T>, launch_each(ceil_div(a.count, kVectorWidth<T>), stream), a.call.function,
                  static_cast<const T*>(a.x), static_cast<T*>(a.y), a.count, alpha, beta);
  });
}

}  // namespace librt::cuda
