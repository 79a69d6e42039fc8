// Four elements a thread.
#include "kernels/optimizer.h"

#include "kernels/common.cuh"
#include "kernels/vector.cuh"

namespace rt::cuda {
namespace {

constexpr int kEach = 4;
using Four = Vector<float, kEach>;

RT_DEVICE Four load_moment(const float* from, int64_t first, int64_t count) {
  return from == nullptr ? Four{} : load_before<kEach>(from, first, count);
}
RT_DEVICE void store_moment(float* to, const Four& values, int64_t first, int64_t count) {
  if (to != nullptr) store_before(to, values, first, count);
}

template <class T>
RT_DEVICE Four load_floats(const void* from, int64_t first, int64_t count) {
  const auto values = load_before<kEach>(static_cast<const T*>(from), first, count);
  Four floats;
  RT_UNROLL
  for (int k = 0; k < kEach; ++k) floats[k] = to_float(values[k]);
  return floats;
}
template <class T>
RT_DEVICE void store_floats(void* to, const Four& floats, int64_t first, int64_t count) {
  Vector<T, kEach> values;
  RT_UNROLL
  for (int k = 0; k < kEach; ++k) values[k] = from_float<T>(floats[k]);
  store_before(static_cast<T*>(to), values, first, count);
}

/// The rate and the gradient's factor of this run.
struct StepNumbers {
  bool skips;
  float rate, scale;

  RT_DEVICE explicit StepNumbers(const StepOperands& step)
      : skips(step.skip != nullptr && *step.skip),
        rate(*step.learning_rate),
        scale(step.gradient_scale == nullptr ? 1.0f : *step.gradient_scale) {}
};

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) step_sgd(SgdArguments to) {
  const StepOperands& step = to.operands;
  const int64_t i = global_index() * kEach;
  if (i >= step.count) return;
  const StepNumbers numbers(step);
  Four parameter = load_floats<T>(step.parameter, i, step.count);
  Four velocity = load_moment(to.velocity, i, step.count);
  if (!numbers.skips) {
    const Four grad = load_floats<T>(step.grad, i, step.count);
    const bool first = step.step != nullptr && *step.step == 1;
    const float share = first ? 1.0f : 1 - to.dampening;
    RT_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const float g = numbers.scale * grad[k] + step.weight_decay * parameter[k];
      float direction = g;
      if (to.velocity != nullptr) {
        velocity[k] = to.momentum * velocity[k] + share * g;
        direction = to.nesterov ? g + to.momentum * velocity[k] : velocity[k];
      }
      parameter[k] -= numbers.rate * direction;
    }
  }
  store_floats<T>(step.new_parameter, parameter, i, step.count);
  store_moment(to.new_velocity, velocity, i, step.count);
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) step_adam(AdamArguments to) {
  const StepOperands& step = to.operands;
  const int64_t i = global_index() * kEach;
  if (i >= step.count) return;
  const StepNumbers numbers(step);
  Four parameter = load_floats<T>(step.parameter, i, step.count);
  Four first = load_moment(to.first, i, step.count), second = load_moment(to.second, i, step.count);
  Four largest = load_moment(to.largest, i, step.count);
  if (!numbers.skips) {
    const Four grad = load_floats<T>(step.grad, i, step.count);
    const auto steps = static_cast<float>(*step.step);
    // 1 / (1 - beta^step) without the difference's cancellation
    const float correction1 = -1 / expm1f(steps * to.log_beta1),
                correction2 = -1 / expm1f(steps * to.log_beta2);
    RT_UNROLL
    for (int k = 0; k < kEach; ++k) {
      float g = numbers.scale * grad[k], p = parameter[k];
      if (to.decoupled)
        p -= numbers.rate * step.weight_decay * p;
      else
        g += step.weight_decay * p;
      first[k] = to.beta1 * first[k] + to.rest1 * g;
      second[k] = to.beta2 * second[k] + to.rest2 * g * g;
      float variance = second[k];
      if (to.largest != nullptr) variance = largest[k] = fmaxf(largest[k], second[k]);
      parameter[k] =
          p - numbers.rate * (first[k] * correction1) / (sqrtf(variance * correction2) + to.epsilon);
    }
  }
  store_floats<T>(step.new_parameter, parameter, i, step.count);
  store_moment(to.new_first, first, i, step.count);
  store_moment(to.new_second, second, i, step.count);
  store_moment(to.new_largest, largest, i, step.count);
}

}  // namespace

cudaError_t sgd_step(const SgdArguments& arguments, cudaStream_t stream) {
  return with_float(arguments.operands.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(step_sgd<T>, launch_each(ceil_div(arguments.operands.count, kEach), stream), arguments);
  });
}

cudaError_t adam_step(const AdamArguments& arguments, cudaStream_t stream) {
  return with_float(arguments.operands.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(step_adam<T>, launch_each(ceil_div(arguments.operands.count, kEach), stream), arguments);
  });
}

}  // namespace rt::cuda
