#include "tools/rttrain/sequences.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/data/edit_distance.h"

namespace rt::train {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_of_sum(double a, double b) {
  const double high = std::max(a, b);
  return high == kNever ? kNever : high + std::log1p(std::exp(std::min(a, b) - high));
}

/// The value subtracted from logits to get log probabilities.
double log_normalizer(std::span<const float> logits) {
  const auto best = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return best + std::log(sum);
}

}  // namespace

std::vector<int64_t> best_path(const StepScores& scores) {
  std::vector<int64_t> labels;
  size_t before = scores.blank;
  for (size_t step = 0; step < scores.steps; ++step) {
    const auto row = scores.at(step);
    const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    if (best != before && best != scores.blank) labels.push_back(static_cast<int64_t>(best));
    before = best;
  }
  return labels;
}

size_t edit_distance(std::span<const int64_t> a, std::span<const int64_t> b) {
  return librt::tools::edit_distance(a, b);
}

double ctc_loss(const StepScores& scores, std::span<const int64_t> labels) {
  // The forward variables over the labels with a blank before, between and after them; initially the empty
  // sequence.
  const size_t positions = 2 * labels.size() + 1;
  const auto label_at = [&](size_t position) {
    return position % 2 == 0 ? scores.blank : static_cast<size_t>(labels[position / 2]);
  };
  std::vector<double> forward(positions, kNever), next(positions);
  for (size_t step = 0; step < scores.steps; ++step) {
    const auto row = scores.at(step);
    const double normalizer = scores.probabilities ? 0 : log_normalizer(row);
    for (size_t position = 0; position < positions; ++position) {
      double reached = step == 0 ? (position < 2 ? 0 : kNever) : forward[position];
      if (step > 0 && position > 0) reached = log_of_sum(reached, forward[position - 1]);
      if (step > 0 && position > 2 && position % 2 == 1 && label_at(position) != label_at(position - 2))
        reached = log_of_sum(reached, forward[position - 2]);
      const auto score = static_cast<double>(row[label_at(position)]);
      next[position] = reached + (scores.probabilities ? std::log(score) : score - normalizer);
    }
    forward.swap(next);
  }
  if (scores.steps == 0) return labels.empty() ? 0 : -kNever;
  return -(positions > 1 ? log_of_sum(forward[positions - 1], forward[positions - 2]) : forward[0]);
}

}  // namespace rt::train
