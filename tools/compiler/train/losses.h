// Losses: from a net's output and a target to a scalar, as graph nodes that are numerically stable in f32.
//
// Knows: the formulas. Must not know: gradients, optimizers, entries.
#pragma once

#include <optional>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::compiler {

/// Every loss is a mean. C is the extent of the class axis.
enum class Loss : uint8_t {
  CrossEntropy,           ///< logits, `labels` i64 without the class axis
  NegativeLogLikelihood,  ///< the same for log probabilities
  BinaryCrossEntropy,     ///< logits and `target` of one shape; over all elements
  MeanSquaredError,       ///< output and `target` of one shape; over all elements
  MeanAbsoluteError,      ///< likewise
  Huber,                  ///< likewise; d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2)
  KlDivergence,  ///< logits and a teacher's logits `target`: T^2 sum p (log p - log q) of softmax(logits / T)
  Ctc,           ///< logits [T,N,C], `labels` i64 [N,S], `input_lengths` and `label_lengths` i64 [N]
};

struct LossOptions {
  Loss loss = Loss::CrossEntropy;
  /// CrossEntropy, NegativeLogLikelihood, KlDivergence; negative counts from the end.
  int64_t class_axis = 1;
  /// CrossEntropy, NegativeLogLikelihood. A label that is ignored or outside [0, C) does not count; the mean
  /// divides by the sum of the weights of the others.
  std::optional<int64_t> ignore_index;
  std::vector<float> class_weights;  ///< empty, or C values
  double label_smoothing =
      0;  ///< CrossEntropy: in [0, 1), the share that all classes get (Szegedy et al. 2016)
  /// BinaryCrossEntropy: weight of the positive elements, one for all or one per index of the last axis.
  std::vector<float> positive_weights;
  double huber_delta = 1;
  double temperature = 1;  ///< KlDivergence (Hinton et al. 2015)
  /// Ctc. A label sequence that does not fit into its input has loss 0; each loss is divided by its number of
  /// labels.
  int64_t blank = 0;
};

/// Appends inputs for the target and the loss, a scalar (f32, or f64 for an output of f64). A final Softmax
/// (or Sigmoid) that the loss contains is stripped, as *stripped reports. weight, unless null: also emits the
/// divisor of the mean, an f32 scalar (the number of elements, or the sum of the weights of the labels that
/// count).
Result<ValueId> emit_loss(Builder& builder, ValueId output, const LossOptions& options, bool* stripped,
                          ValueId* weight = nullptr);

}  // namespace librt::compiler
