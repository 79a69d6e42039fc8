#include "runtime/geometry/step_form.h"

namespace librt {
namespace {

struct OperandIndices {
  int8_t learning_rate, step, gradient_scale;
};

OperandIndices operand_indices_of(op::StepRule rule) noexcept {
  switch (rule) {
    case op::StepRule::Sgd: return {3, 4, 5};
    case op::StepRule::Adam: return {5, 4, 7};
    case op::StepRule::RmsProp: return {3, -1, 6};
    case op::StepRule::Adadelta: return {4, -1, 5};
    case op::StepRule::Lamb: return {5, 4, 6};
    case op::StepRule::Adagrad:
    case op::StepRule::Lion: break;
  }
  return {3, -1, 4};
}

}  // namespace

Status states_are_f32(const NodeView& node) {
  for (const StepState& state : step_states(node.kind()))
    if (node.has(state.operand) && node.dtype(state.operand) != DType::F32)
      return unsupported("states must be f32, not ", name_of(node.dtype(state.operand)));
  return {};
}

StepForm step_form(const NodeView& node) {
  const bool blocks = node.kind() == OpKind::BlockwiseStep;
  const op::BlockwiseStepAttributes attributes =
      blocks ? node.as<op::BlockwiseStepAttributes>() : blockwise(node.node.op, 0);
  StepForm form;
  form.rule = attributes.step;
  form.block_size = attributes.block_size;
  form.beta1 = form.rule == op::StepRule::Sgd ? attributes.momentum : attributes.beta1;
  form.beta2 = attributes.beta2;
  form.epsilon = attributes.epsilon;
  form.weight_decay = attributes.weight_decay;
  form.momentum = attributes.momentum;
  form.share = 1 - attributes.dampening;
  form.variant = attributes.nesterov || attributes.decoupled;

  const auto operand_index = [&](size_t operand) { return blocks ? blockwise_operand(operand) : operand; };
  const auto present = [&](int operand) {
    const size_t at = operand < 0 ? node.input_count() : operand_index(static_cast<size_t>(operand));
    return static_cast<int8_t>(node.has(at) ? static_cast<int>(at) : -1);
  };
  const OperandIndices indices = operand_indices_of(form.rule);
  form.learning_rate = present(indices.learning_rate);
  form.step = present(indices.step);
  form.gradient_scale = present(indices.gradient_scale);
  form.skip = present(indices.gradient_scale + 1);

  const std::span<const StepState> states = step_states(step_of(attributes).type);
  uint8_t count = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    StepForm::State& state = form.states[i];
    state.input = static_cast<uint8_t>(operand_index(states[i].operand));
    state.present = node.has(state.input);
    state.negative = states[i].negative;
    if (state.present) state.output = ++count;
  }
  for (size_t i = 0; blocks && i < states.size(); ++i) {
    StepForm::State& state = form.states[i];
    if (!state.present) continue;
    state.scales = static_cast<uint8_t>(kFirstScales + i);
    state.next_scales = static_cast<uint8_t>(state.output + count);
    state.codebook = static_cast<uint8_t>(codebook_operand(states[i]));
    state.levels = static_cast<int32_t>(node.input(state.codebook).elements());
  }
  return form;
}

}  // namespace librt
