// Optimizers: from gradients to the next values of parameters and states, as graph nodes.
//
// Knows: the steps' operands, clipping, loss scaling, groups of parameters. Must not know: losses, gradients,
// files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/compiler/train/training_graph.h"

namespace librt::compiler {

enum class Optimizer : uint8_t { Sgd, Adam, AdamW, RmsProp, Adagrad, Adadelta, Lamb, Lion };

/// Hyperparameters, each read by some of the optimizers; unset ones have the optimizer's usual default.
struct OptimizerOptions {
  Optimizer optimizer = Optimizer::Sgd;
  std::optional<float> momentum;      ///< Sgd 0.9, RmsProp 0
  float dampening = 0;                ///< Sgd
  bool nesterov = false;              ///< Sgd
  std::optional<float> beta1, beta2;  ///< Adam, AdamW, Lamb 0.9 and 0.999, Lion 0.9 and 0.99
  std::optional<float> epsilon;       ///< 1e-8; Adagrad 1e-10; Adadelta, Lamb 1e-6
  std::optional<float> decay_rate;    ///< of the mean of squares: RmsProp 0.99, Adadelta 0.9
  bool centered = false;              ///< RmsProp
  bool amsgrad = false;               ///< Adam, AdamW
  float learning_rate_decay = 0;      ///< Adagrad: lr / (1 + (step - 1) decay)
  float initial_accumulator = 0;      ///< Adagrad
  float weight_decay = 0;             ///< decoupled with AdamW, Lamb and Lion
  DType state_type = DType::F32;      ///< of moments between steps: F32, BF16, or U8: block-wise quantized
};

/// Parameters with their own hyperparameters.
struct ParameterGroup {
  std::string pattern;  ///< a shell pattern of names; the first group that matches counts
  float learning_rate_scale = 1;
  std::optional<float> weight_decay;  ///< instead of OptimizerOptions'
};

/// What happens to gradients before the steps.
struct GradientOptions {
  std::optional<float> clip_value;  ///< each element to [-value, value]
  std::optional<float> clip_norm;   ///< all by min(1, norm / (their common norm + 1e-6))
  /// The loss is multiplied by a factor that gradients are divided by; a step with a gradient that is not
  /// finite is skipped.
  std::optional<float> loss_scale;
  /// The factor doubles after so many steps and halves at a skipped one; 0: it stays.
  int64_t loss_scale_interval = 0;
};

struct TrainingOptimizer {
  OptimizerOptions optimizer;
  std::vector<ParameterGroup> groups;
  GradientOptions gradients;
  std::optional<float> average_decay;  ///< also keep ema' = decay ema + (1 - decay) p'
  /// Shards of the optimizer state, one for each rank (ZeRO stage 1, Rajbhandari et al. 2020); 0: every rank
  /// has all of it.
  int64_t shards = 0;
};

struct Gradient {
  ValueId parameter = kNoValue;  ///< a state of the graph
  ValueId value = kNoValue;
  /// With shards, instead of `parameter`: the parameters of the bucket, flattened and concatenated.
  std::vector<ValueId> bucket = {};
};

/// The factor of the loss in this step (a state), or kNoValue without loss scaling.
ValueId emit_loss_scale(Builder& builder, const GradientOptions& options, StateTable& states);

/// Appends the optimizer's nodes. loss_scale: of emit_loss_scale(); divisor: of the gradients, or kNoValue.
/// Returns `skip`, a bool scalar that is true where the step is skipped, or kNoValue where no step ever is.
ValueId emit_optimizer(Builder& builder, const TrainingOptimizer& options,
                       std::span<const Gradient> gradients, ValueId learning_rate, ValueId loss_scale,
                       ValueId divisor, StateTable& states, std::vector<StateUpdate>& updates);

/// The index of the first group that matches this parameter; -1 for none.
int group_of(const TrainingOptimizer& options, const std::string& parameter);

/// The name of the state that holds a parameter's moving average.
std::string average_name(std::string_view parameter);

}  // namespace librt::compiler
