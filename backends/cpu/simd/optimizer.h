// Optimizer steps; the formulas are in schema/ops.fbs.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// Optimizer steps; the formulas are in schema/ops.fbs. LambDirection computes r, into new_p.
enum class StepFunction : uint8_t { Sgd, Adam, RmsProp, Adagrad, Adadelta, LambDirection, Lion, Count };
struct StepParameters {
  float learning_rate, gradient_scale, weight_decay, epsilon;
  float beta1, beta2;              ///< beta1 (or momentum) of the first state; beta2 of the second
  float correction1, correction2;  ///< 1 / (1 - beta^step)
  float momentum;                  ///< RmsProp
  float share;                     ///< Sgd: weight of the gradient in the new velocity
  bool variant;                    ///< Sgd: Nesterov; Adam: decoupled weight decay
};
/// Operands of a step; states that it does not need may be null. New values may be in place.
struct StepOperands {
  const float *p, *g, *states[3];
  float *new_p, *new_states[3];
};

struct OptimizerLoops {
  /// Elements [begin, end) of an optimizer step.
  void (*optimizer_step[static_cast<int>(StepFunction::Count)])(const StepOperands& operands, int64_t begin,
                                                                int64_t end, const StepParameters& numbers);
};
RT_DECLARE_LOOPS(OptimizerLoops);

}  // namespace librt::cpu
