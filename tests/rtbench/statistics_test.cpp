// Statistics against values of numpy and scipy 1.17.1 (scipy.stats.bootstrap, method "percentile", 100,000
// resamples, three seeds).
#include "tools/rtbench/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace librt::bench {
namespace {

const std::vector<double> kFifteen = {10.2, 10.4, 10.1, 10.9, 11.8,  10.3, 10.0, 10.6,
                                      15.7, 10.5, 10.7, 10.8, 10.35, 11.1, 13.9};
const std::vector<double> kForty = {0.98, 0.92, 0.89, 1.0,  0.88, 1.1,  1.01, 0.98, 0.71, 0.62,
                                    0.63, 0.73, 1.02, 0.52, 0.97, 0.68, 1.02, 0.81, 0.81, 1.19,
                                    0.96, 1.0,  1.0,  0.68, 1.01, 1.5,  0.74, 1.12, 1.14, 1.14,
                                    0.84, 0.88, 0.74, 0.94, 1.26, 0.82, 0.6,  0.96, 1.14, 0.9};

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Statistics, QuantilesAreThoseOfNumpy) {
  const auto fifteen = sorted(kFifteen), forty = sorted(kForty);
  EXPECT_DOUBLE_EQ(quantile(fifteen, 0.5), 10.6);
  EXPECT_NEAR(quantile(fifteen, 0.1), 10.14, 1e-12);
  EXPECT_NEAR(quantile(fifteen, 0.25), 10.325, 1e-12);
  EXPECT_NEAR(quantile(fifteen, 0.9), 13.06, 1e-12);
  EXPECT_NEAR(quantile(fifteen, 0.99), 15.448, 1e-12);
  EXPECT_NEAR(quantile(forty, 0.5), 0.95, 1e-12);
  EXPECT_NEAR(quantile(forty, 0.99), 1.4064, 1e-12);
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile(std::vector<double>{3}, 0.99), 3);
}

TEST(Statistics, IntervalsAreThoseOfScipy) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const Interval forty = median_interval({kForty}, seed);
    EXPECT_NEAR(forty.low, 0.86, 0.021) << seed;
    EXPECT_NEAR(forty.high, 1.0, 0.006) << seed;
    const Interval fifteen = median_interval({kFifteen}, seed);
    EXPECT_DOUBLE_EQ(fifteen.low, 10.3) << seed;
    // scipy's own results lie at both of these, by seed.
    EXPECT_GE(fifteen.high, 10.9) << seed;
    EXPECT_LE(fifteen.high, 11.1) << seed;
  }
}

TEST(Statistics, IntervalsAreReproducible) {
  const Interval a = median_interval({kForty}, 7), b = median_interval({kForty}, 7);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(Statistics, IntervalsOfFewValues) {
  EXPECT_EQ(median_interval({}).high, 0);
  EXPECT_EQ(median_interval({{}, {}}).high, 0);
  const Interval one = median_interval({{4.5}});
  EXPECT_EQ(one.low, 4.5);
  EXPECT_EQ(one.high, 4.5);
}

// The range of two values holds the median in half of all samples only. scipy: median * exp(-+ 1.2533 *
// t.ppf(0.975, n - 1) * sem(log(values))).
TEST(Statistics, IntervalsOfTwoToFiveValuesAreWiderThanTheirRange) {
  const Interval two = median_interval({{0.965}, {1.036}});
  EXPECT_NEAR(two.low, 0.5685, 2e-3);
  EXPECT_NEAR(two.high, 1.7608, 2e-3);
  const Interval four = median_interval({{0.95, 1.0}, {1.02, 1.05}});
  EXPECT_NEAR(four.low, 0.9286, 2e-3);
  EXPECT_NEAR(four.high, 1.0986, 2e-3);
  EXPECT_FALSE(summarize({{1.0, 1.0}, {1.0, 1.0}}).precise) << "four equal values";
}

// 1000 samples of 25 values of a known distribution: the interval should hold the true median in 95 % of
// them. The percentile bootstrap of a median is somewhat conservative at this size.
TEST(Statistics, IntervalsHoldTheMedianAsOftenAsTheySay) {
  uint64_t state = 99;
  int held = 0;
  constexpr int kSamples = 1000;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<double> values;
    for (int k = 0; k < 25; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      values.push_back(-std::log(1 - static_cast<double>(state >> 11) * 0x1p-53));  // exponential
    }
    const Interval interval = median_interval({values}, static_cast<uint64_t>(i) + 1);
    held += interval.low <= std::log(2.0) && std::log(2.0) <= interval.high;
  }
  EXPECT_GE(held, 920);
  EXPECT_LE(held, 985);
}

// Runs of a round agree, rounds do not: the runs alone would give an interval that is much too narrow.
TEST(Statistics, RoundsThatDifferWidenTheInterval) {
  Rounds rounds;
  std::vector<double> together;
  for (const double level : {1.0, 1.1, 1.3, 1.05}) {
    std::vector<double>& round = rounds.emplace_back();
    for (int i = 0; i < 50; ++i) round.push_back(level + 0.0001 * i);
    together.insert(together.end(), round.begin(), round.end());
  }
  const Interval alone = median_interval({together}), apart = median_interval(rounds);
  EXPECT_GT(apart.high - apart.low, 1.5 * (alone.high - alone.low));
  EXPECT_LT(apart.low, 1.05);
  EXPECT_GT(apart.high, 1.1);
}

TEST(Statistics, OutliersByTukeysRule) {
  EXPECT_EQ(slow_outliers(sorted(kFifteen)), 2u);  // above 12.0125
  EXPECT_EQ(slow_outliers(sorted(kForty)), 1u);    // above 1.3425
  EXPECT_EQ(slow_outliers(std::vector<double>{2, 2, 2, 2}), 0u);
  EXPECT_EQ(slow_outliers({}), 0u);
}

TEST(Statistics, PreciseNeedsTwoRoundsAndTwoPercent) {
  const std::vector<double> close(20, 5.0);
  EXPECT_FALSE(summarize({close}).precise) << "one round says nothing about the next";
  const Timing timing = summarize({close, close});
  EXPECT_TRUE(timing.precise);
  EXPECT_EQ(timing.runs, 40u);
  EXPECT_EQ(timing.rounds, 2u);
  EXPECT_TRUE(is_enough(timing, 40));
  EXPECT_FALSE(is_enough(timing, 41));
  std::vector<double> wide;
  for (int i = 0; i < 20; ++i) wide.push_back(i % 2 == 0 ? 4.0 : 6.0);
  EXPECT_FALSE(summarize({wide, wide}).precise);
  EXPECT_FALSE(summarize({}).precise);
  EXPECT_TRUE(std::isinf(precision_of({0, 0}, 0)));
}

TEST(Statistics, OutliersStayInTheOtherFigures) {
  const Timing timing = summarize({kFifteen});
  EXPECT_EQ(timing.runs, 15u);
  EXPECT_EQ(timing.outliers, 2u);
  EXPECT_DOUBLE_EQ(timing.median_ms, 10.6);
  EXPECT_NEAR(timing.p99_ms, 15.448, 1e-12);
  EXPECT_EQ(timing.least_ms, 10.0);
}

TEST(Statistics, OverlapAndRatio) {
  EXPECT_TRUE(overlap({1, 2}, {2, 3}));
  EXPECT_TRUE(overlap({1, 4}, {2, 3}));
  EXPECT_FALSE(overlap({1, 2}, {2.1, 3}));
  const Interval quotient = ratio({4, 6}, {2, 3});
  EXPECT_DOUBLE_EQ(quotient.low, 4.0 / 3);
  EXPECT_DOUBLE_EQ(quotient.high, 3.0);
}

}  // namespace
}  // namespace librt::bench
