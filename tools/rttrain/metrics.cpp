#include "tools/rttrain/metrics.h"

#include <algorithm>
#include <cmath>

namespace rt::train {

bool larger_is_better(const std::string& metric) noexcept {
  return metric == "accuracy" || metric == "f1_macro" || metric.starts_with("top");
}

void Metrics::add(std::span<const float> scores, std::span<const int64_t> labels) {
  const size_t classes = labels.empty() ? 0 : scores.size() / labels.size();
  if (hits_.size() < classes)
    for (auto* list : {&hits_, &predicted_, &labelled_}) list->resize(classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || static_cast<size_t>(labels[i]) >= classes) continue;
    const auto label = static_cast<size_t>(labels[i]);
    const auto row = scores.subspan(i * classes, classes);
    const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    ++counted_;
    ++labelled_[label];
    ++predicted_[best];
    hits_[label] += best == label;
    right_ += best == label;
    // Classes before it in a stable order from the best to the worst.
    size_t ahead = 0;
    for (size_t c = 0; c < classes; ++c) ahead += row[c] > row[label] || (row[c] == row[label] && c < label);
    among_top_ += ahead < top_k_;
    if (probabilities_) {
      loss_ -= std::log(static_cast<double>(row[label]));
    } else {
      const auto largest = static_cast<double>(row[best]);
      double sum = 0;
      for (float score : row) sum += std::exp(static_cast<double>(score) - largest);
      loss_ += std::log(sum) + largest - static_cast<double>(row[label]);
    }
  }
}

void Metrics::add(std::span<const float> values, std::span<const float> targets) {
  numbers_ = true;
  for (size_t i = 0; i < targets.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - static_cast<double>(targets[i]);
    squared_ += difference * difference;
    absolute_ += std::fabs(difference);
  }
  counted_ += targets.size();
}

std::vector<Measured> Metrics::results() const {
  const auto count = static_cast<double>(std::max<uint64_t>(counted_, 1));
  if (numbers_) return {{"mse", squared_ / count}, {"mae", absolute_ / count}};
  double f1 = 0;
  size_t occur = 0;
  for (size_t c = 0; c < hits_.size(); ++c) {
    if (labelled_[c] + predicted_[c] == 0) continue;
    f1 += 2 * static_cast<double>(hits_[c]) / static_cast<double>(labelled_[c] + predicted_[c]);
    ++occur;
  }
  std::vector<Measured> all = {{"loss", loss_ / count}, {"accuracy", static_cast<double>(right_) / count}};
  if (hits_.size() > top_k_)
    all.push_back({"top" + std::to_string(top_k_), static_cast<double>(among_top_) / count});
  all.push_back({"f1_macro", f1 / static_cast<double>(std::max<size_t>(occur, 1))});
  all.push_back({"perplexity", std::exp(loss_ / count)});
  return all;
}

}  // namespace rt::train
