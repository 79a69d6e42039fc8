// What a model's outputs are worth, added up batch by batch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rt::train {

struct Measured {
  std::string name;
  double value = 0;
};

/// False for losses, errors and perplexity.
bool larger_is_better(const std::string& metric) noexcept;

/// For class labels: accuracy, topK (when there are more than K classes), f1_macro (mean over the classes
/// that occur, as label or as prediction), loss (cross entropy in nats), perplexity (e^loss). For numbers:
/// mse, mae. Computed in double.
class Metrics {
 public:
  /// probabilities: the output is a softmax's, else logits.
  Metrics(bool probabilities, size_t top_k) : probabilities_(probabilities), top_k_(top_k) {}

  /// scores [count, classes]; a label below 0 is not counted.
  void add(std::span<const float> scores, std::span<const int64_t> labels);
  void add(std::span<const float> values, std::span<const float> targets);
  std::vector<Measured> results() const;

 private:
  bool probabilities_;
  size_t top_k_;
  uint64_t counted_ = 0, right_ = 0, among_top_ = 0;
  double loss_ = 0, squared_ = 0, absolute_ = 0;
  bool numbers_ = false;
  std::vector<uint64_t> hits_, predicted_, labelled_;  ///< for each class
};

}  // namespace rt::train
