// Optimizer steps: which operands are states, and conversion to and from a BlockwiseStep.
//
// Knows: the conventions of the steps in schema/ops.fbs. Must not know: any step's formula.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/graph/op.h"

namespace librt {

/// An operand that is optimizer state.
struct StepState {
  uint8_t operand = 0;
  bool negative = true;  ///< may be negative; else it is never below 0
};
inline constexpr size_t kMostStepStates = 3;

/// The states of SgdStep, AdamStep, ..., in the order of the step's results; each may be absent. Empty for
/// other operators.
std::span<const StepState> step_states(OpKind step) noexcept;

/// A BlockwiseStep has additional operands between the gradient and the step's other operands.
inline constexpr size_t kFirstCodebook = 2, kFirstScales = 4, kBlockwiseOperands = 2 + kMostStepStates;
/// Index of the operand that is this state's codebook.
constexpr size_t codebook_operand(const StepState& state) noexcept {
  return kFirstCodebook + (state.negative ? 0 : 1);
}
/// Index of the step's operand among those of the BlockwiseStep.
constexpr size_t blockwise_operand(size_t step_operand) noexcept {
  return step_operand < kFirstCodebook ? step_operand : step_operand + kBlockwiseOperands;
}

/// The BlockwiseStep of a step with these attributes (SgdStepAttributes, ...).
op::BlockwiseStepAttributes blockwise(const OpAttributes& step, int64_t block_size);
/// The step that a BlockwiseStep performs.
OpAttributes step_of(const op::BlockwiseStepAttributes& blockwise);

}  // namespace librt
