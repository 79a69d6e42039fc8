// An optimizer step in the form that kernels take: one struct for all rules, with f32 or block-quantized
// states.
//
// Knows: the conventions of the steps in schema/ops.fbs. Must not know: any step's formula.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/geometry/optimizer_step.h"
#include "runtime/graph/node_view.h"

namespace librt {

/// Indices of a step's operands, -1 for one that is absent, and its attributes. Parameter and gradient are
/// inputs 0 and 1, the new parameter is output 0.
struct StepForm {
  struct State {
    bool present = false;
    bool negative = true;  ///< may be negative; else it is never below 0
    uint8_t input = 0, output = 0;
    // of block-quantized states
    uint8_t scales = 0, next_scales = 0, codebook = 0;
    int32_t levels = 0;  ///< entries of the codebook
  };

  op::StepRule rule = op::StepRule::Sgd;
  int8_t learning_rate = -1, step = -1, gradient_scale = -1, skip = -1;
  std::array<State, kMostStepStates> states;
  int64_t block_size = 0;  ///< 0: states are f32

  float beta1 = 0, beta2 = 0;  ///< beta1 or momentum, beta2: decay rates of the states
  float epsilon = 0, weight_decay = 0;
  float momentum = 0;    ///< RmsProp
  float share = 1;       ///< Sgd: 1 - dampening, the gradient's factor in the velocity after the first step
  bool variant = false;  ///< Sgd: Nesterov; Adam: decoupled weight decay

  bool has(size_t state) const noexcept { return states[state].present; }
};

/// Ok if SgdStep, AdamStep, ... has its states in f32, the only type that StepForm describes for them.
Status states_are_f32(const NodeView& node);

/// The form of SgdStep, AdamStep, ... or BlockwiseStep.
StepForm step_form(const NodeView& node);

}  // namespace librt
