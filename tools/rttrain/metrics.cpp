#include "tools/rttrain/metrics.h"

#include <algorithm>
#include <cmath>

namespace rt::train {

bool larger_is_better(const std::string& metric) noexcept {
  return metric.ends_with("accuracy") || metric == "f1_macro" || metric.starts_with("top");
}

std::vector<std::string> metric_names(const Scoring& scoring, bool class_labels, size_t classes) {
  if (scoring.blank) return {"loss", "label_error_rate", "sequence_accuracy"};
  if (!class_labels && !scoring.binary) return {"mse", "mae"};
  if (!class_labels) return {"loss", "accuracy", "f1_macro"};
  std::vector<std::string> names = {"loss", "accuracy"};
  if (classes > scoring.top_k) names.push_back("top" + std::to_string(scoring.top_k));
  names.insert(names.end(), {"f1_macro", "perplexity"});
  return names;
}

void Metrics::count_class(size_t label, size_t predicted) {
  ++counted_;
  ++labelled_[label];
  ++predicted_[predicted];
  hits_[label] += predicted == label;
  right_ += predicted == label;
}

void Metrics::add(std::span<const float> scores, std::span<const int64_t> labels, size_t inner) {
  const size_t classes = labels.empty() ? 0 : scores.size() / labels.size();
  if (hits_.size() < classes)
    for (auto* list : {&hits_, &predicted_, &labelled_}) list->resize(classes);
  row_.resize(classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || static_cast<size_t>(labels[i]) >= classes || labels[i] == scoring_.ignored) continue;
    const auto label = static_cast<size_t>(labels[i]);
    const size_t first = i / inner * classes * inner + i % inner;
    for (size_t c = 0; c < classes; ++c) row_[c] = static_cast<double>(scores[first + c * inner]);
    const auto best = static_cast<size_t>(std::max_element(row_.begin(), row_.end()) - row_.begin());
    count_class(label, best);
    // The number of classes before it in a stable descending sort by score.
    size_t ahead = 0;
    for (size_t c = 0; c < classes; ++c)
      ahead += row_[c] > row_[label] || (row_[c] == row_[label] && c < label);
    among_top_ += ahead < scoring_.top_k;
    if (scoring_.probabilities) {
      loss_ -= std::log(row_[label]);
    } else {
      double sum = 0;
      for (double score : row_) sum += std::exp(score - row_[best]);
      loss_ += std::log(sum) + row_[best] - row_[label];
    }
  }
}

void Metrics::add_binary(double value, bool target) {
  count_class(target, value > (scoring_.probabilities ? 0.5 : 0.0));
  if (scoring_.probabilities)
    loss_ -= std::log(target ? value : 1 - value);
  else  // softplus(-x) or softplus(x)
    loss_ += std::max(target ? -value : value, 0.0) + std::log1p(std::exp(-std::fabs(value)));
}

void Metrics::add(std::span<const float> values, std::span<const float> targets) {
  if (scoring_.binary) {
    for (auto* list : {&hits_, &predicted_, &labelled_}) list->resize(2);
    for (size_t i = 0; i < targets.size(); ++i)
      add_binary(static_cast<double>(values[i]), targets[i] >= 0.5f);
    return;
  }
  numbers_ = true;
  for (size_t i = 0; i < targets.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - static_cast<double>(targets[i]);
    squared_ += difference * difference;
    absolute_ += std::fabs(difference);
  }
  counted_ += targets.size();
}

void Metrics::add(const StepScores& scores, std::span<const int64_t> labels) {
  const size_t errors = edit_distance(best_path(scores), labels);
  ++counted_;
  right_ += errors == 0;
  label_errors_ += errors;
  true_labels_ += labels.size();
  // As in the training loss: impossible sequences count as 0.
  const double loss = ctc_loss(scores, labels);
  if (std::isfinite(loss)) loss_ += loss / static_cast<double>(std::max<size_t>(labels.size(), 1));
}

rt::Status Metrics::add_ranks(const Ranks& ranks) {
  if (ranks.count() == 1) return {};
  // The number of classes first: a rank without samples does not know it.
  std::vector<double> known = {hits_.empty() ? 0.0 : 1.0, static_cast<double>(hits_.size()),
                               numbers_ ? 1.0 : 0.0};
  if (rt::Status status = ranks.sum(known); !status) return status;
  const auto classes = static_cast<size_t>(known[0] > 0 ? known[1] / known[0] : 0);
  numbers_ = known[2] > 0;
  for (auto* list : {&hits_, &predicted_, &labelled_}) list->resize(classes);
  // Whole numbers are exact in a double up to 2^53.
  std::vector<double> sums;
  const auto each = [&](auto visit) {
    for (uint64_t* count : {&counted_, &right_, &among_top_, &true_labels_, &label_errors_}) visit(*count);
    for (double* sum : {&loss_, &squared_, &absolute_}) visit(*sum);
    for (auto* list : {&hits_, &predicted_, &labelled_})
      for (uint64_t& count : *list) visit(count);
  };
  each([&](auto& number) { sums.push_back(static_cast<double>(number)); });
  if (rt::Status status = ranks.sum(sums); !status) return status;
  size_t next = 0;
  each([&](auto& number) { number = static_cast<std::remove_reference_t<decltype(number)>>(sums[next++]); });
  return {};
}

std::vector<Measured> Metrics::results() const {
  const auto count = static_cast<double>(std::max<uint64_t>(counted_, 1));
  if (numbers_) return {{"mse", squared_ / count}, {"mae", absolute_ / count}};
  if (scoring_.blank)
    return {{"loss", loss_ / count},
            {"label_error_rate",
             static_cast<double>(label_errors_) / static_cast<double>(std::max<uint64_t>(true_labels_, 1))},
            {"sequence_accuracy", static_cast<double>(right_) / count}};
  double f1 = 0;
  size_t occur = 0;
  for (size_t c = 0; c < hits_.size(); ++c) {
    if (labelled_[c] + predicted_[c] == 0) continue;
    f1 += 2 * static_cast<double>(hits_[c]) / static_cast<double>(labelled_[c] + predicted_[c]);
    ++occur;
  }
  std::vector<Measured> all = {{"loss", loss_ / count}, {"accuracy", static_cast<double>(right_) / count}};
  if (hits_.size() > scoring_.top_k && !scoring_.binary)
    all.push_back({"top" + std::to_string(scoring_.top_k), static_cast<double>(among_top_) / count});
  all.push_back({"f1_macro", f1 / static_cast<double>(std::max<size_t>(occur, 1))});
  if (!scoring_.binary) all.push_back({"perplexity", std::exp(loss_ / count)});
  return all;
}

}  // namespace rt::train
