#include "runtime/geometry/optimizer_step.h"

#include <utility>

namespace librt {
namespace {

using Blockwise = op::BlockwiseStepAttributes;

// Calls copy(field of the step, field of the BlockwiseStep) for all fields but the rule.

template <class Copy>
void match(op::SgdStepAttributes& step, Blockwise& blocks, Copy copy) {
  copy(step.momentum, blocks.momentum);
  copy(step.dampening, blocks.dampening);
  copy(step.nesterov, blocks.nesterov);
  copy(step.weight_decay, blocks.weight_decay);
}
template <class Copy>
void match(op::AdamStepAttributes& step, Blockwise& blocks, Copy copy) {
  copy(step.beta1, blocks.beta1);
  copy(step.beta2, blocks.beta2);
  copy(step.epsilon, blocks.epsilon);
  copy(step.weight_decay, blocks.weight_decay);
  copy(step.decoupled, blocks.decoupled);
}
template <class Copy>
void match(op::RmsPropStepAttributes& step, Blockwise& blocks, Copy copy) {
  copy(step.alpha, blocks.beta1);
  copy(step.epsilon, blocks.epsilon);
  copy(step.momentum, blocks.momentum);
  copy(step.weight_decay, blocks.weight_decay);
}
template <class Copy>
void match(op::AdagradStepAttributes& step, Blockwise& blocks, Copy copy) {
  copy(step.epsilon, blocks.epsilon);
  copy(step.weight_decay, blocks.weight_decay);
}
template <class Copy>
void match(op::AdadeltaStepAttributes& step, Blockwise& blocks, Copy copy) {
  copy(step.rho, blocks.beta1);
  copy(step.epsilon, blocks.epsilon);
  copy(step.weight_decay, blocks.weight_decay);
}
template <class Copy>
void match(op::LambStepAttributes& step, Blockwise& blocks, Copy copy) {
  copy(step.beta1, blocks.beta1);
  copy(step.beta2, blocks.beta2);
  copy(step.epsilon, blocks.epsilon);
  copy(step.weight_decay, blocks.weight_decay);
}
template <class Copy>
void match(op::LionStepAttributes& step, Blockwise& blocks, Copy copy) {
  copy(step.beta1, blocks.beta1);
  copy(step.beta2, blocks.beta2);
  copy(step.weight_decay, blocks.weight_decay);
}

/// Calls f with default attributes of the step.
template <class F>
auto with_step(op::StepRule rule, F f) {
  switch (rule) {
    case op::StepRule::Sgd: return f(op::SgdStepAttributes());
    case op::StepRule::Adam: return f(op::AdamStepAttributes());
    case op::StepRule::RmsProp: return f(op::RmsPropStepAttributes());
    case op::StepRule::Adagrad: return f(op::AdagradStepAttributes());
    case op::StepRule::Adadelta: return f(op::AdadeltaStepAttributes());
    case op::StepRule::Lamb: return f(op::LambStepAttributes());
    case op::StepRule::Lion: break;
  }
  return f(op::LionStepAttributes());
}

op::StepRule rule_of(OpKind step) noexcept {
  switch (step) {
    case OpKind::SgdStep: return op::StepRule::Sgd;
    case OpKind::AdamStep: return op::StepRule::Adam;
    case OpKind::RmsPropStep: return op::StepRule::RmsProp;
    case OpKind::AdagradStep: return op::StepRule::Adagrad;
    case OpKind::AdadeltaStep: return op::StepRule::Adadelta;
    case OpKind::LambStep: return op::StepRule::Lamb;
    default: return op::StepRule::Lion;
  }
}

}  // namespace

std::span<const StepState> step_states(OpKind step) noexcept {
  static constexpr StepState kReal[] = {{2, true}}, kSquares[] = {{2, false}, {3, false}},
                             kAdam[] = {{2, true}, {3, false}, {6, false}},
                             kRmsProp[] = {{2, false}, {4, true}, {5, true}};
  switch (step) {
    case OpKind::SgdStep:
    case OpKind::LionStep: return kReal;
    case OpKind::AdamStep: return kAdam;
    case OpKind::RmsPropStep: return kRmsProp;
    case OpKind::AdagradStep: return std::span(kSquares).first(1);
    case OpKind::AdadeltaStep: return kSquares;
    case OpKind::LambStep: return std::span(kAdam).first(2);
    default: return {};
  }
}

op::BlockwiseStepAttributes blockwise(const OpAttributes& step, int64_t block_size) {
  Blockwise blocks;
  blocks.step = rule_of(step.type);
  blocks.block_size = block_size;
  with_step(blocks.step, [&](auto own) {
    own = *static_cast<const decltype(own)*>(step.value);
    match(own, blocks, [](const auto& from, auto& to) { to = from; });
  });
  return blocks;
}

OpAttributes step_of(const op::BlockwiseStepAttributes& blockwise) {
  Blockwise blocks = blockwise;
  return with_step(blocks.step, [&](auto own) {
    match(own, blocks, [](auto& to, const auto& from) { to = from; });
    return make_op(std::move(own));
  });
}

}  // namespace librt
