// Metrics of a model's outputs, accumulated batch by batch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/rttrain/ranks.h"
#include "tools/rttrain/sequences.h"

namespace rt::train {

struct Measured {
  std::string name;
  double value = 0;
};

/// False for losses, errors and perplexity.
bool larger_is_better(const std::string& metric) noexcept;

struct Scoring;
/// The names of what Metrics measures, in its order. class_labels: labels are classes, else numbers.
std::vector<std::string> metric_names(const Scoring& scoring, bool class_labels, size_t classes);

/// Interpretation of a model's outputs and labels; from its loss.
struct Scoring {
  bool probabilities = false;  ///< outputs are probabilities (softmax or sigmoid), else logits
  bool binary = false;         ///< float targets are 0 or 1, and outputs are their logits or probabilities
  std::optional<int64_t> ignored;  ///< a label that is not counted, like those out of range
  int64_t class_axis = -1;         ///< of the scores; negative counts from the end
  size_t top_k = 5;
  std::optional<size_t> blank;  ///< set: per-step scores decode to label sequences, with this blank

  size_t class_axis_of(size_t rank) const {
    return static_cast<size_t>(class_axis < 0 ? class_axis + static_cast<int64_t>(rank) : class_axis);
  }
};

/// For class labels: accuracy, topK (when there are more than K classes), f1_macro (mean over the classes
/// that occur, as label or as prediction), loss (cross entropy in nats), perplexity (e^loss). For binary
/// targets: loss, accuracy and f1_macro per element. For regression: mse, mae. For label sequences (greedy
/// decoding): loss (CTC in nats per label, mean over the sequences), label_error_rate (insertions, deletions
/// and substitutions per true label), sequence_accuracy (fraction without an error). Computed in double.
class Metrics {
 public:
  explicit Metrics(const Scoring& scoring) : scoring_(scoring) {}

  /// scores [outer, classes, inner], labels [outer, inner].
  void add(std::span<const float> scores, std::span<const int64_t> labels, size_t inner = 1);
  void add(std::span<const float> values, std::span<const float> targets);
  void add(const StepScores& scores, std::span<const int64_t> labels);
  /// Adds the counts of the other ranks; a collective call.
  rt::Status add_ranks(const Ranks& ranks);
  std::vector<Measured> results() const;

 private:
  void count_class(size_t label, size_t predicted);
  void add_binary(double value, bool target);

  Scoring scoring_;
  uint64_t counted_ = 0, right_ = 0, among_top_ = 0;
  uint64_t true_labels_ = 0, label_errors_ = 0;  ///< of sequences
  double loss_ = 0, squared_ = 0, absolute_ = 0;
  bool numbers_ = false;
  std::vector<double> row_;
  std::vector<uint64_t> hits_, predicted_, labelled_;  ///< per class
};

}  // namespace rt::train
