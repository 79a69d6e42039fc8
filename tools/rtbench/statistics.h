// Statistics of repeated measurements: median with a bootstrap confidence interval, quantiles, outliers, and
// when to stop.
//
// Knows: numbers. Must not know: what they measure, clocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace librt::bench {

/// Bounds of a confidence interval.
struct Interval {
  double low = 0, high = 0;
};

/// Confidence of every interval.
inline constexpr double kConfidence = 0.95;
/// An interval is precise when both its ends lie within this share of the median.
inline constexpr double kWantedPrecision = 0.02;

/// Times of runs of one configuration, in milliseconds.
struct Timing {
  double median_ms = 0;
  Interval interval;  ///< of the median, milliseconds, kConfidence
  double p90_ms = 0, p99_ms = 0, least_ms = 0;
  size_t runs = 0;
  size_t rounds = 0;    ///< blocks of consecutive runs, with other work of the study between them
  size_t outliers = 0;  ///< by Tukey's rule, on the slow side; they are part of all other figures
  bool precise =
      false;  ///< the interval is within kWantedPrecision, of two rounds and kLeastForBootstrap runs or more
  std::string imprecise;  ///< why not: "the time was spent: the interval is within 5.1 %, not 2 %"
};

/// Runs of one configuration in milliseconds, a vector for each round.
using Rounds = std::vector<std::vector<double>>;

/// Quantile q in [0,1] of sorted values, linear between neighbours (type 7 of Hyndman and Fan 1996, which
/// numpy and scipy use). 0 where there are none.
double quantile(std::span<const double> sorted, double q);

/// The median's percentile bootstrap interval at kConfidence (Efron and Tibshirani 1993, chapter 13). With
/// several rounds rounds are drawn first, then runs within them (Davison and Hinkley 1997, section 3.8), so
/// that what changes from round to round widens the interval. Seeded: equal values give an equal interval.
/// Fewer than kLeastForBootstrap values, whose range alone holds the median too seldom: at least Student's
/// interval of the logarithms' mean, times the standard error of a median over that of a mean, 1.253. One
/// value, or none: that value, or 0, at both ends, which says nothing.
inline constexpr size_t kLeastForBootstrap = 6;
Interval median_interval(const Rounds& rounds, uint64_t seed = 1);

/// Values above the third quartile by more than 1.5 interquartile ranges (Tukey 1977).
size_t slow_outliers(std::span<const double> sorted);

/// Larger distance of the interval's ends from the median, as a share of it; infinite for a median of 0.
double precision_of(const Interval& interval, double median);

/// All figures but `imprecise`.
Timing summarize(const Rounds& rounds);

/// Whether a configuration is measured well enough: precise, after at least `least_runs`.
bool is_enough(const Timing& timing, size_t least_runs);

/// Whether intervals have a value in common: the difference is then too close to call.
bool overlap(const Interval& a, const Interval& b);

/// The interval of numerator / denominator from intervals of both, which are positive: the widest.
Interval ratio(const Interval& numerator, const Interval& denominator);

}  // namespace librt::bench
