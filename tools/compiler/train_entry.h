// Adds the entry `train_step` to a model: loss, backward pass and optimizer, all as graph nodes.
//
// Knows: which constants become trainable state, how a net differs in training mode, losses and optimizers.
// Must not know: how gradients are derived (autodiff.h), passes, files.
//
// train_step has the inputs of `infer`, then `labels` (or `target`), then `learning_rate` (an f32 scalar).
// Its first output is `loss`, followed by the outputs of `infer`. Weights become named state that both
// entries share.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::compiler {

enum class Loss : uint8_t {
  CrossEntropy,      ///< logits [N,C], labels i64 [N]; mean over the batch
  MeanSquaredError,  ///< mean over all elements; `target` has the output's shape
};

enum class Optimizer : uint8_t { Sgd, Adam, AdamW };

struct TrainOptions {
  Loss loss = Loss::CrossEntropy;
  Optimizer optimizer = Optimizer::Sgd;
  float momentum = 0.9f;               ///< Sgd
  bool nesterov = false;               ///< Sgd
  float beta1 = 0.9f, beta2 = 0.999f;  ///< Adam, AdamW
  float epsilon = 1e-8f;               ///< Adam, AdamW
  float weight_decay = 0;
  /// Shell patterns over weight names; a weight is trained when one matches. Empty: every weight.
  std::vector<std::string> trainable;
  float batch_norm_momentum = 0.9f;  ///< weight of the old running value
  bool batch_norm_unbiased = false;  ///< running variance with n - 1, as PyTorch has it; ONNX divides by n
};

struct TrainReport {
  std::vector<std::string> trained, frozen;
  int64_t trained_elements = 0;
  bool stripped_softmax = false;  ///< the net ended in a softmax, which the loss contains
};

/// The model must hold the entry `infer`, not yet optimized (batch normalization not folded), and no
/// `train_step`. On an error the model is unchanged.
Status add_train_entry(ModelGraph& model, const TrainOptions& options, TrainReport* report);

}  // namespace rt::compiler
