// Optimizer steps in one pass, in place. Learning rate and step are tensors: recorded work never changes.
#include "kernels/optimizer.h"

#include <cmath>

#include "backends/cuda/kernel.h"

namespace rt::cuda {
namespace {

Status moments_supported(const NodeView& node, std::initializer_list<size_t> moments) {
  for (size_t i : moments)
    if (node.has(i) && node.dtype(i) != DType::F32)
      return unsupported("moments must be f32, not ", name_of(node.dtype(i)));
  return {};
}
Status supports_sgd(const CudaDevice&, const NodeView& node) {
  return moments_supported(node, {2});
}
Status supports_adam(const CudaDevice&, const NodeView& node) {
  return moments_supported(node, {2, 3, 6});
}

/// Where a step has its operands beside parameter and gradient; those that it does not have are absent.
struct Places {
  size_t learning_rate, step, gradient_scale;  ///< skip comes behind the scale
};

StepOperands operands_of(const NodeView& node, float weight_decay) {
  return {
      .type = element_type(node.dtype(0)), .weight_decay = weight_decay, .count = node.input(0).elements()};
}

void bind(StepOperands& operands, const Places& at, const Call& call) {
  operands.parameter = call.in(0);
  operands.grad = call.in(1);
  operands.new_parameter = call.out(0);
  operands.learning_rate = call.in<float>(at.learning_rate);
  operands.step = call.in<int32_t>(at.step);
  operands.gradient_scale = call.in<float>(at.gradient_scale);
  operands.skip = call.in<bool>(at.gradient_scale + 1);
}

/// Inputs (p, grad, [v], lr, [step], [gradient_scale], [skip]), outputs (p', [v']).
Result<KernelPtr> create_sgd(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::SgdStepAttributes>();
  const SgdArguments arguments{.operands = operands_of(node, attributes.weight_decay),
                               .momentum = attributes.momentum,
                               .dampening = attributes.dampening,
                               .nesterov = attributes.nesterov};
  Requirements requirements = in_place();
  static constexpr InPlace kVelocity[] = {{2, 1}};
  if (node.has(2)) requirements.more_in_place = kVelocity;
  return make_kernel(
      [arguments](const Call& call) {
        SgdArguments a = arguments;
        bind(a.operands, {.learning_rate = 3, .step = 4, .gradient_scale = 5}, call);
        a.velocity = call.in<float>(2);
        a.new_velocity = call.out<float>(1);
        return sgd_step(a, call.stream);
      },
      requirements);
}

/// Inputs (p, grad, m, v, step, lr, [largest v], [gradient_scale], [skip]), outputs (p', m', v', [largest
/// v']).
Result<KernelPtr> create_adam(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::AdamStepAttributes>();
  const auto beta1 = static_cast<double>(attributes.beta1), beta2 = static_cast<double>(attributes.beta2);
  const AdamArguments arguments{.operands = operands_of(node, attributes.weight_decay),
                                .beta1 = attributes.beta1,
                                .beta2 = attributes.beta2,
                                .rest1 = static_cast<float>(1 - beta1),
                                .rest2 = static_cast<float>(1 - beta2),
                                .log_beta1 = static_cast<float>(std::log(beta1)),
                                .log_beta2 = static_cast<float>(std::log(beta2)),
                                .epsilon = attributes.epsilon,
                                .decoupled = attributes.decoupled};
  Requirements requirements = in_place();
  static constexpr InPlace kMoments[] = {{2, 1}, {3, 2}, {6, 3}};
  requirements.more_in_place = std::span(kMoments).first(node.has(6) ? 3 : 2);
  return make_kernel(
      [arguments](const Call& call) {
        AdamArguments a = arguments;
        bind(a.operands, {.learning_rate = 5, .step = 4, .gradient_scale = 7}, call);
        a.first = call.in<float>(2);
        a.second = call.in<float>(3);
        a.largest = call.in<float>(6);
        a.new_first = call.out<float>(1);
        a.new_second = call.out<float>(2);
        a.new_largest = call.out<float>(3);
        return adam_step(a, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_optimizer();
std::span<const KernelRow> rows_optimizer() {
  static constexpr KernelRow kRows[] = {
      row<create_sgd, supports_sgd>(OpKind::SgdStep, "sgd_step", kShortFloats),
      row<create_adam, supports_adam>(OpKind::AdamStep, "adam_step", kShortFloats),
  };
  return kRows;
}

}  // namespace rt::cuda
