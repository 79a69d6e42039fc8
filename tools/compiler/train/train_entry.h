// Adds the entry `train_step` to a model: loss, backward pass and optimizer, all as graph nodes.
//
// Knows: which constants become trainable state, how a net differs in training mode, which entries there are.
// Must not know: how gradients are derived (autodiff.h), losses' and optimizers' formulas (losses.h,
// optimizers.h), passes, files.
//
// train_step has the inputs of `infer`, then `labels` (or `target`), then `learning_rate` (an f32 scalar).
// Its first output is `loss`, followed by the outputs of `infer`. Weights become named state that both
// entries share. With an average of the weights there is also `infer_ema`, which computes with it. With
// accumulation there are also `accumulate` (train_step without learning_rate: adds its gradients to those of
// the micro-batches before) and `update` (learning_rate alone: one optimizer step with their mean; its output
// `micro_batches` is their number).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/train/data_parallel.h"
#include "tools/compiler/train/known_weights.h"
#include "tools/compiler/train/losses.h"
#include "tools/compiler/train/optimizers.h"

namespace librt::compiler {

struct TrainOptions {
  LossOptions loss;
  TrainingOptimizer optimizer;
  /// Shell patterns over weight names; a weight is trained when one matches. Empty: every weight, or the
  /// adapters alone where the model has some (lora.h); these are always trained.
  std::vector<std::string> trainable;
  /// Shell patterns over weight names that stay constants whatever `trainable` says: what a framework holds
  /// fixed, as tables of positions, which ONNX does not tell. One that matches no weight is an error.
  std::vector<std::string> frozen;
  /// A buffer, or a single value, is trained only where a pattern of `trainable` is its whole name.
  KnownWeights known;
  /// Names of values that no gradient flows through: results of Identity where the framework detaches.
  std::set<std::string> detached;
  float adapter_dropout = 0;  ///< of the adapters' inputs
  /// Every rank runs the step with its own part of a batch; `loss`, gradients and running statistics are over
  /// all ranks.
  DataParallelOptions data_parallel;
  /// Attention in smaller operators is recognized before differentiation: its gradient keeps no scores.
  bool find_attention = true;
  bool accumulate = false;                   ///< also the entries `accumulate` and `update`
  std::optional<float> batch_norm_momentum;  ///< weight of the old running value; none: each layer's own
  bool batch_norm_unbiased = false;  ///< running variance with n - 1, as PyTorch has it; ONNX divides by n
  bool quantize_aware = false;       ///< the model has fake quantization (quantize_aware.h), or gets it
  float range_momentum = 0.99f;      ///< weight of its old ranges; 1: ranges that are known stay
};

struct TrainReport {
  std::vector<std::string> trained, frozen;  ///< frozen: buffers as well
  std::vector<std::string> frozen_buffers;   ///< those that KnownWeights lists
  size_t detached = 0;                       ///< values that stop the gradient
  std::vector<std::string> single;           ///< not trained: see KnownWeights
  std::vector<std::string> batch_states;     ///< set by each forward pass: running values, random counters
  int64_t trained_elements = 0;
  bool stripped_activation = false;  ///< the net ended in a softmax or sigmoid, which the loss contains
};

/// The model must hold the entry `infer`, not yet optimized (batch normalization not folded), and no
/// `train_step`. On an error the model is unchanged.
Status add_train_entry(ModelGraph& model, const TrainOptions& options, TrainReport* report);

}  // namespace librt::compiler
