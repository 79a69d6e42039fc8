// One Philox block per thread: four values of 24 bits, or two of 53.
#include "kernels/random.h"

#include "kernels/common.cuh"
#include "kernels/philox.cuh"

namespace librt::cuda {
namespace {

/// Box and Muller (1958): u and v in [0, 1) become two normally distributed values.
RT_DEVICE void box_muller(float& u, float& v) {
  const float radius = sqrtf(-2 * logf(1 - u)), angle = 6.28318530717958647692f * v;
  u = radius * cosf(angle);
  v = radius * sinf(angle);
}
RT_DEVICE void box_muller(double& u, double& v) {
  const double radius = sqrt(-2 * log(1 - u)), angle = 6.28318530717958647692 * v;
  u = radius * cos(angle);
  v = radius * sin(angle);
}

/// Multiplication and addition are rounded separately (no FMA), so that all devices generate the same uniform
/// values.
RT_DEVICE float scaled(float first, float second, float u) {
  return __fadd_rn(first, __fmul_rn(second, u));
}
RT_DEVICE double scaled(double first, double second, double u) {
  return __dadd_rn(first, __dmul_rn(second, u));
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) generate(RandomArguments to) {
  using Real = Wide<T>;
  constexpr int kEach = sizeof(Real) == 8 ? 2 : 4;
  const int64_t i = global_index();
  if (i * kEach >= to.count) return;
  const uint64_t counter = to.counter == nullptr ? 0 : static_cast<uint64_t>(*to.counter);
  const PhiloxBlock bits = philox(to.seed, counter, static_cast<uint64_t>(i));
  Real u[kEach];
  RT_UNROLL
  for (int k = 0; k < kEach; ++k) {
    if constexpr (kEach == 2)
      u[k] = uniform53(bits.words[2 * k], bits.words[2 * k + 1]);
    else
      u[k] = uniform24(bits.words[k]);
  }
  if (to.normal) {
    RT_UNROLL
    for (int k = 0; k < kEach; k += 2) box_muller(u[k], u[k + 1]);
  }
  T* result = static_cast<T*>(to.result);
  RT_UNROLL
  for (int k = 0; k < kEach; ++k)
    if (i * kEach + k < to.count)
      result[i * kEach + k] =
          narrow<T>(scaled(static_cast<Real>(to.first), static_cast<Real>(to.second), u[k]));
}

}  // namespace

cudaError_t random(const RandomArguments& arguments, cudaStream_t stream) {
  if (arguments.type == ElementType::F64)
    return launch(generate<double>, launch_each(ceil_div(arguments.count, 2), stream), arguments);
  const LaunchConfig config = launch_each(ceil_div(arguments.count, 4), stream);
  return with_float(arguments.type, [&](auto tag) {
    return launch(generate<typename decltype(tag)::type>, config, arguments);
  });
}

}  // namespace librt::cuda
