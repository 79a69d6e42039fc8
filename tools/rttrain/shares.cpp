#include "tools/rttrain/shares.h"

#include <charconv>
#include <cmath>

#include "tools/rttrain/source.h"

namespace rt::train {

Shares::Shares(std::vector<double> weights) : ranks_(weights.size()), before_({0}) {
  double all = 0;
  for (const double weight : weights) all += weight;
  double sum = 0;
  for (const double weight : weights) before_.push_back((sum += weight) / all);
}

size_t Shares::first_of(size_t rank, size_t samples) const noexcept {
  if (rank >= ranks_) return samples;
  if (before_.empty() || samples < ranks_) return samples * rank / ranks_;
  // One sample for each, and the proportion of the others.
  return rank + static_cast<size_t>(std::lround(static_cast<double>(samples - ranks_) * before_[rank]));
}

rt::Result<ShareOption> parse_share(const std::string& text) {
  ShareOption option;
  if (text == "equal") return option;
  option.is_measured = text == "auto";
  if (option.is_measured) return option;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    double weight = 0;
    const auto [last, code] = std::from_chars(text.data() + at, text.data() + end, weight);
    if (code != std::errc() || last != text.data() + end || !std::isfinite(weight) || weight <= 0)
      return bad_data(
          "--share: expected equal, auto, or a number above 0 for each rank such as 3,1, found '" + text +
          "'");
    option.weights.push_back(weight);
    at = end + 1;
  }
  return option;
}

}  // namespace rt::train
