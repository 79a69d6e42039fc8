// Optimizer steps: which operands are states, and a step in the form that a BlockwiseStep names it.
//
// Knows: the conventions of the steps in schema/ops.fbs. Must not know: any step's formula.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/graph/op.h"

namespace rt {

/// A state among a step's operands.
struct StepState {
  uint8_t operand = 0;
  bool negative = true;  ///< else it is never below 0
};
inline constexpr size_t kMostStepStates = 3;

/// Of SgdStep, AdamStep, ..., in the order of the step's results; each may be absent. Empty for other
/// operators.
std::span<const StepState> step_states(OpKind step) noexcept;

/// A BlockwiseStep has operands of its own between the gradient and the step's other operands.
inline constexpr size_t kFirstCodebook = 2, kFirstScales = 4, kBlockwiseOperands = 2 + kMostStepStates;
/// The operand that is the codebook of such a state.
constexpr size_t codebook_operand(const StepState& state) noexcept {
  return kFirstCodebook + (state.negative ? 0 : 1);
}
/// Where the step's operand stands among those of the BlockwiseStep.
constexpr size_t blockwise_operand(size_t step_operand) noexcept {
  return step_operand < kFirstCodebook ? step_operand : step_operand + kBlockwiseOperands;
}

/// The step with these attributes, SgdStepAttributes and so on, in blocks.
op::BlockwiseStepAttributes blockwise(const OpAttributes& step, int64_t block_size);
/// The step that is made in blocks.
OpAttributes step_of(const op::BlockwiseStepAttributes& blockwise);

}  // namespace rt
