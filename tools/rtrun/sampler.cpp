#include "tools/rtrun/sampler.h"

#include <algorithm>
#include <cmath>

#include "tools/data/random.h"

namespace rt::run {

int64_t Sampler::choose(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (options_.temperature <= 0) return best - logits.begin();
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    candidates_.push_back(
        {std::exp((static_cast<double>(logits[i]) - static_cast<double>(*best)) / options_.temperature),
         static_cast<int64_t>(i)});
  // Sorting a vocabulary takes as long as a small model's run.
  const auto less = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
  };
  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates_.size()) {
    const auto end = candidates_.begin() + options_.top_k;
    std::partial_sort(candidates_.begin(), end, candidates_.end(),
                      [&](const Candidate& a, const Candidate& b) { return less(b, a); });
    candidates_.erase(end, candidates_.end());
  }
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  if (options_.top_p < 1) {
    double reached = 0;
    auto first = candidates_.end();  // of those that are kept
    std::make_heap(candidates_.begin(), first, less);
    do {
      std::pop_heap(candidates_.begin(), first, less);
      reached += (--first)->weight;
    } while (first != candidates_.begin() && reached < options_.top_p * total);
    candidates_.erase(candidates_.begin(), first);
    std::reverse(candidates_.begin(), candidates_.end());
    total = reached;
  }
  double ticket = static_cast<double>(librt::split_mix(random_) >> 11) * 0x1p-53 * total;
  for (const Candidate& candidate : candidates_) {
    ticket -= candidate.weight;
    if (ticket < 0) return candidate.token;
  }
  return candidates_.back().token;
}

}  // namespace rt::run
