#include "tools/rtbench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/data/random.h"

namespace librt::bench {
namespace {

constexpr size_t kResamples = 1000;
// The bootstrap's time grows with the runs; of more than these, every k-th is taken, which can only widen the
// interval.
constexpr size_t kMostRunsOfARound = 256;

/// Uniform in [0, count).
size_t draw(uint64_t& state, size_t count) {
  // The upper 32 bits, scaled: a bias below count / 2^32.
  return static_cast<size_t>(((split_mix(state) >> 32) * static_cast<uint64_t>(count)) >> 32);
}

/// Reorders the values.
double median_of(std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(middle);
  std::nth_element(values.begin(), at, values.end());
  if (values.size() % 2 == 1) return *at;
  return (*at + *std::max_element(values.begin(), at)) / 2;
}

Rounds thinned(const Rounds& rounds) {
  Rounds result;
  for (const std::vector<double>& round : rounds) {
    if (round.empty()) continue;
    const size_t step = (round.size() + kMostRunsOfARound - 1) / kMostRunsOfARound;
    std::vector<double>& kept = result.emplace_back();
    for (size_t i = 0; i < round.size(); i += step) kept.push_back(round[i]);
  }
  return result;
}

// Positive values only: times.
Interval student_interval(const std::vector<double>& values, double median) {
  static constexpr double kStudent[] = {0,     12.706, 4.303,
                                        3.182, 2.776,  2.571};  // 0.975, by degrees of freedom
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += std::log(value) / count;
  for (const double value : values) squares += (std::log(value) - mean) * (std::log(value) - mean);
  const size_t freedom = values.size() - 1;
  const double error = std::sqrt(squares / static_cast<double>(freedom) / count);
  const double reach = std::exp(1.2533 * kStudent[freedom] * error);
  return {median / reach, median * reach};
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  if (sorted.empty()) return 0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

Interval median_interval(const Rounds& rounds, uint64_t seed) {
  const Rounds kept = thinned(rounds);
  if (kept.empty()) return {};
  uint64_t state = seed;
  std::vector<double> medians, sample;
  medians.reserve(kResamples);
  for (size_t i = 0; i < kResamples; ++i) {
    sample.clear();
    for (size_t k = 0; k < kept.size(); ++k) {
      const std::vector<double>& round = kept[kept.size() == 1 ? 0 : draw(state, kept.size())];
      for (size_t run = 0; run < round.size(); ++run) sample.push_back(round[draw(state, round.size())]);
    }
    medians.push_back(median_of(sample));
  }
  std::sort(medians.begin(), medians.end());
  Interval interval = {quantile(medians, (1 - kConfidence) / 2), quantile(medians, (1 + kConfidence) / 2)};
  std::vector<double> all;
  for (const std::vector<double>& round : kept) all.insert(all.end(), round.begin(), round.end());
  if (all.size() > 1 && all.size() < kLeastForBootstrap && *std::min_element(all.begin(), all.end()) > 0) {
    const Interval wider = student_interval(all, median_of(all));
    interval = {std::min(interval.low, wider.low), std::max(interval.high, wider.high)};
  }
  return interval;
}

size_t slow_outliers(std::span<const double> sorted) {
  const double upper = quantile(sorted, 0.75);
  const double fence = upper + 1.5 * (upper - quantile(sorted, 0.25));
  return static_cast<size_t>(sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), fence));
}

double precision_of(const Interval& interval, double median) {
  if (!(median > 0)) return std::numeric_limits<double>::infinity();
  return std::max(interval.high - median, median - interval.low) / median;
}

Timing summarize(const Rounds& rounds) {
  Timing timing;
  std::vector<double> all;
  for (const std::vector<double>& round : rounds) {
    if (!round.empty()) ++timing.rounds;
    all.insert(all.end(), round.begin(), round.end());
  }
  if (all.empty()) return timing;
  std::sort(all.begin(), all.end());
  timing.runs = all.size();
  timing.median_ms = quantile(all, 0.5);
  timing.interval = median_interval(rounds);
  timing.p90_ms = quantile(all, 0.9);
  timing.p99_ms = quantile(all, 0.99);
  timing.least_ms = all.front();
  timing.outliers = slow_outliers(all);
  timing.precise = timing.rounds >= 2 && timing.runs >= kLeastForBootstrap &&
                   precision_of(timing.interval, timing.median_ms) <= kWantedPrecision;
  return timing;
}

bool is_enough(const Timing& timing, size_t least_runs) {
  return timing.precise && timing.runs >= least_runs;
}

bool overlap(const Interval& a, const Interval& b) {
  return a.low <= b.high && b.low <= a.high;
}

Interval ratio(const Interval& numerator, const Interval& denominator) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {denominator.high > 0 ? numerator.low / denominator.high : kInfinity,
          denominator.low > 0 ? numerator.high / denominator.low : kInfinity};
}

}  // namespace librt::bench
