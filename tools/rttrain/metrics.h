// What a model's outputs are worth, added up batch by batch.
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

/// What the outputs and labels of a model mean; from its loss.
struct Scoring {
  bool probabilities = false;      ///< outputs are those of a softmax or sigmoid, else logits
  bool binary = false;             ///< float targets are 0 or 1, and outputs what the sigmoid makes of them
  std::optional<int64_t> ignored;  ///< a label that is not counted; others are those outside the classes
  int64_t class_axis = -1;         ///< of the scores; negative counts from the end
  size_t top_k = 5;
  std::optional<size_t> blank;  ///< set: scores for every step spell sequences of labels, with this blank

  size_t class_axis_of(size_t rank) const {
    return static_cast<size_t>(class_axis < 0 ? class_axis + static_cast<int64_t>(rank) : class_axis);
  }
};

/// For class labels: accuracy, topK (when there are more than K classes), f1_macro (mean over the classes
/// that occur, as label or as prediction), loss (cross entropy in nats), perplexity (e^loss). For binary
/// targets: loss, accuracy and f1_macro of each element. For numbers: mse, mae. For sequences of labels,
/// spelled by the best class of every step: loss (CTC in nats for each label, mean over the sequences),
/// label_error_rate (labels to insert, remove or replace, for each true label), sequence_accuracy (the share
/// without an error). Computed in double.
class Metrics {
 public:
  explicit Metrics(const Scoring& scoring) : scoring_(scoring) {}

  /// scores [outer, classes, inner], labels [outer, inner].
  void add(std::span<const float> scores, std::span<const int64_t> labels, size_t inner = 1);
  void add(std::span<const float> values, std::span<const float> targets);
  void add(const StepScores& scores, std::span<const int64_t> labels);
  /// Adds what the other ranks counted; each of them calls this.
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
  std::vector<uint64_t> hits_, predicted_, labelled_;  ///< for each class
};

}  // namespace rt::train
