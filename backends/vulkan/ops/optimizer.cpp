// Optimizer steps: one invocation works out what all elements share, then one fused pass over a parameter.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/vulkan/split.h"

namespace rt::vulkan {
namespace {

/// What tells one step from another: its number in optimizer_step.comp, where its operands stand, its
/// attributes.
struct StepForm {
  uint32_t number = 0;
  std::array<int, 3> states{-1, -1, -1};
  int learning_rate = 3, step = -1, gradient_scale = 4;  // skip comes behind
  float keep1 = 0, keep2 = 0, epsilon = 0, decay = 0, momentum = 0, share = 1;
  bool variant = false;
};

StepForm form_of(const NodeView& node) {
  StepForm form;
  switch (node.kind()) {
    case OpKind::SgdStep: {
      const auto& sgd = node.as<op::SgdStepAttributes>();
      form = {.number = 0, .states = {2, -1, -1}, .step = 4, .gradient_scale = 5, .keep1 = sgd.momentum};
      form.decay = sgd.weight_decay;
      form.share = 1 - sgd.dampening;
      form.variant = sgd.nesterov;
      break;
    }
    case OpKind::AdamStep: {
      const auto& adam = node.as<op::AdamStepAttributes>();
      form = {.number = 1, .states = {2, 3, 6}, .learning_rate = 5, .step = 4, .gradient_scale = 7};
      form.keep1 = adam.beta1, form.keep2 = adam.beta2;
      form.epsilon = adam.epsilon, form.decay = adam.weight_decay;
      form.variant = adam.decoupled;
      break;
    }
    case OpKind::RmsPropStep: {
      const auto& rms = node.as<op::RmsPropStepAttributes>();
      form = {.number = 2, .states = {2, 4, 5}, .gradient_scale = 6, .keep1 = rms.alpha};
      form.epsilon = rms.epsilon, form.decay = rms.weight_decay, form.momentum = rms.momentum;
      break;
    }
    case OpKind::AdagradStep: {
      const auto& adagrad = node.as<op::AdagradStepAttributes>();
      form = {.number = 3, .states = {2, -1, -1}};
      form.epsilon = adagrad.epsilon, form.decay = adagrad.weight_decay;
      break;
    }
    case OpKind::AdadeltaStep: {
      const auto& adadelta = node.as<op::AdadeltaStepAttributes>();
      form = {
          .number = 4, .states = {2, 3, -1}, .learning_rate = 4, .gradient_scale = 5, .keep1 = adadelta.rho};
      form.epsilon = adadelta.epsilon, form.decay = adadelta.weight_decay;
      break;
    }
    default: {
      const auto& lion = node.as<op::LionStepAttributes>();
      form = {.number = 6, .states = {2, -1, -1}, .keep1 = lion.beta1, .keep2 = lion.beta2};
      form.decay = lion.weight_decay;
    }
  }
  return form;
}

bool has(const NodeView& node, int i) {
  return i >= 0 && node.has(static_cast<size_t>(i));
}

constexpr int64_t kFour[] = {16};  ///< bytes that an invocation works on

/// Parameters, gradients and states in f32.
Status supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(rows_fit(device, ceil_div(node.input(0).elements(), 4), kFour));
  for (int i : form_of(node).states)
    if (has(node, i) && node.dtype(static_cast<size_t>(i)) != DType::F32)
      return unsupported("input ", i, " of type ", name_of(node.dtype(static_cast<size_t>(i))),
                         ", only f32 is supported");
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const StepForm form = form_of(node);
  const auto rate = static_cast<size_t>(form.learning_rate);
  // What is absent is bound to something of the same size, not read.
  const auto or_input = [&](int i, size_t other) {
    return in(has(node, i) ? static_cast<size_t>(i) : other);
  };
  const int scale = form.gradient_scale, skip = scale + 1;
  auto program = std::make_unique<Program>("optimizer_step");
  const Ref numbers = program->scratch(64);
  Step& shared = program->dispatch(Shader::optimizer_numbers, 1, 1);
  shared.spec(has(node, form.step)).spec(has(node, scale)).spec(has(node, skip));
  shared.push(static_cast<float>(std::log(std::max(static_cast<double>(form.keep1), 1e-30))))
      .push(static_cast<float>(std::log(std::max(static_cast<double>(form.keep2), 1e-30))))
      .push(form.share);
  shared.read(0, in(rate))
      .read(1, or_input(form.step, rate))
      .read(2, or_input(scale, rate))
      .read(3, or_input(skip, rate));
  shared.write(4, numbers);

  uint32_t present = 0;
  for (uint32_t i = 0; i < 3; ++i) present |= has(node, form.states[i]) ? 1u << i : 0u;
  program->in_place(0);
  uint8_t results = 0;
  for (uint32_t i = 0; i < 3; ++i)
    if ((present >> i & 1u) != 0) program->also_in_place(static_cast<uint8_t>(form.states[i]), ++results);
  const VulkanDevice& vulkan = cast(device);
  for (const Rows& part : ranges_of_rows(vulkan, ceil_div(node.input(0).elements(), 4), kFour)) {
    const auto of = [&](const Ref& whole) { return rows_of(whole, part, kFour[0]); };
    Step& step = program->dispatch_each(Shader::optimizer_step, part.count, vulkan.plan().elementwise_lanes);
    step.spec(form.number).spec(present).spec(form.variant);
    step.push(part.count).push(form.keep1).push(form.keep2);
    step.push(static_cast<float>(1 - static_cast<double>(form.keep1)));
    step.push(static_cast<float>(1 - static_cast<double>(form.keep2)));
    step.push(form.epsilon).push(form.decay).push(form.momentum);
    step.read(0, of(in(0))).read(1, of(in(1))).read(5, numbers).write(6, of(out(0)));
    size_t result = 0;
    for (uint32_t i = 0; i < 3; ++i) {
      step.read(2 + i, of(or_input(form.states[i], 0)));
      step.write(7 + i, of(out((present >> i & 1u) == 0 ? 0 : ++result)));
    }
  }
  return finish(std::move(program));
}

constexpr DTypeSet kF32{DType::F32};
constexpr KernelRow kRows[] = {
    {OpKind::SgdStep, "sgd_step", kF32, supports, create},
    {OpKind::AdamStep, "adam_step", kF32, supports, create},
    {OpKind::RmsPropStep, "rms_prop_step", kF32, supports, create},
    {OpKind::AdagradStep, "adagrad_step", kF32, supports, create},
    {OpKind::AdadeltaStep, "adadelta_step", kF32, supports, create},
    {OpKind::LionStep, "lion_step", kF32, supports, create},
};

}  // namespace

std::span<const KernelRow> rows_optimizer() {
  return kRows;
}

}  // namespace rt::vulkan
