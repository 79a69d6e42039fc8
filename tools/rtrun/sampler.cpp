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
  const bool all = options_.top_k <= 0 && options_.top_p >= 1;
  if (!all)
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates_.size())
    candidates_.resize(static_cast<size_t>(options_.top_k));
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  if (options_.top_p < 1) {
    double reached = 0;
    size_t kept = 0;
    while (kept < candidates_.size() && (kept == 0 || reached < options_.top_p * total))
      reached += candidates_[kept++].weight;
    candidates_.resize(kept);
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
