// Optimizer steps in one pass, in place. Learning rate and step are tensors: recorded work never changes.
#include <cmath>

#include "backends/cpu/kernel.h"

namespace rt::cpu {
namespace {

Status supports_moments(const NodeView& node, size_t first, size_t last) {
  for (size_t i = first; i <= last; ++i)
    if (node.has(i) && node.dtype(i) != DType::F32)
      return unsupported("moments must be f32, not ", name_of(node.dtype(i)));
  return {};
}
Status supports_fixed(const NodeView& node, size_t first) {
  for (size_t i = first; i < node.inputs.size(); ++i)
    if (node.has(i)) return unsupported("a scaled or skipped step");
  return {};
}
Status supports_sgd(const CpuDevice&, const NodeView& node) {
  RT_TRY(supports_fixed(node, 4));
  return supports_moments(node, 2, 2);
}
Status supports_adam(const CpuDevice&, const NodeView& node) {
  RT_TRY(supports_fixed(node, 6));
  return supports_moments(node, 2, 3);
}

/// Inputs (p, grad, [v], lr), outputs (p', [v']).
Result<KernelPtr> create_sgd(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::SgdStepAttributes>();
  const int64_t n = node.input(0).elements();
  const bool momentum = node.has(2);  // then, and only then, there is a second output
  Requirements requirements = in_place();
  static constexpr InPlace kVelocity[] = {{2, 1}};
  if (momentum) requirements.more_in_place = kVelocity;
  return make_kernel(
      [=, &simd = device.simd(), factor = attributes.momentum, decay = attributes.weight_decay,
       nesterov = attributes.nesterov](const Call& call) noexcept {
        const float* p = call.in<float>(0);
        const float* g = call.in<float>(1);
        const float* v = momentum ? call.in<float>(2) : nullptr;
        const float rate = *call.in<float>(3);
        float* new_p = call.out<float>(0);
        float* new_v = momentum ? call.out<float>(1) : nullptr;
        parallel_for(n, 2, 64, [&](int64_t begin, int64_t end) noexcept {
          simd.sgd(p + begin, g + begin, v != nullptr ? v + begin : nullptr, new_p + begin,
                   new_v != nullptr ? new_v + begin : nullptr, end - begin, rate, factor, decay, nesterov);
        });
      },
      requirements);
}

/// Inputs (p, grad, m, v, step, lr), outputs (p', m', v').
Result<KernelPtr> create_adam(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::AdamStepAttributes>();
  const int64_t n = node.input(0).elements();
  AdamNumbers fixed{};
  fixed.beta1 = attributes.beta1;
  fixed.beta2 = attributes.beta2;
  fixed.epsilon = attributes.epsilon;
  fixed.weight_decay = attributes.weight_decay;
  fixed.decoupled = attributes.decoupled;
  Requirements requirements = in_place();
  static constexpr InPlace kMoments[] = {{2, 1}, {3, 2}};
  requirements.more_in_place = kMoments;
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        AdamNumbers numbers = fixed;
        const double step = static_cast<double>(*call.in<int32_t>(4));
        numbers.learning_rate = *call.in<float>(5);
        numbers.correction1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(fixed.beta1), step)));
        numbers.correction2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(fixed.beta2), step)));
        parallel_for(n, 4, 64, [&](int64_t begin, int64_t end) noexcept {
          simd.adam(call.in<float>(0) + begin, call.in<float>(1) + begin, call.in<float>(2) + begin,
                    call.in<float>(3) + begin, call.out<float>(0) + begin, call.out<float>(1) + begin,
                    call.out<float>(2) + begin, end - begin, numbers);
        });
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_optimizer();
std::span<const KernelRow> rows_optimizer() {
  static constexpr KernelRow kRows[] = {
      row<create_sgd, supports_sgd>(OpKind::SgdStep, "sgd_step", DTypeSet{DType::F32}),
      row<create_adam, supports_adam>(OpKind::AdamStep, "adam_step", DTypeSet{DType::F32}),
  };
  return kRows;
}

}  // namespace rt::cpu
