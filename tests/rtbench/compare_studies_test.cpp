// Comparing studies: a planted slowdown is found, chance is not, and what cannot be compared is named.
#include "tools/rtbench/report/compare_studies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/rtbench/example_study.h"

namespace librt::bench {
namespace {

/// A study as another run of the same build would give it: each median moves by chance within its interval,
/// and each process by a little of its own. factor: of the times of one device, or of all (-1).
Study measured_again(std::mt19937& random, double factor = 1, int device = -1, double spread = 0.012) {
  std::normal_distribution<double> normal;
  Study study = example_study();
  const double process = 0.003 * normal(random);
  for (Series& series : study.series)
    for (Point& point : series.points) {
      if (!point.error.empty()) continue;
      double shift = std::exp(process + spread / 1.96 * normal(random));
      if (device < 0 || series.device == static_cast<size_t>(device)) shift *= factor;
      Timing& timing = point.timing;
      timing.median_ms *= shift;
      timing.interval = {timing.median_ms * (1 - spread), timing.median_ms * (1 + spread)};
    }
  return study;
}

TEST(CompareStudies, TwoRunsOfTheSameBuildAreTheSame) {
  std::mt19937 random(1);
  int alarms = 0;
  constexpr int kTrials = 200;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto comparison = compare_studies(measured_again(random), measured_again(random), 0.0);
    ASSERT_TRUE(comparison.ok());
    alarms += comparison->regressed ? 1 : 0;
  }
  EXPECT_LE(alarms, kTrials / 20);  // at 0 % tolerance
}

TEST(CompareStudies, FindsAPlantedSlowdown) {
  std::mt19937 random(2);
  int found = 0, found_in_noise = 0;
  constexpr int kTrials = 50;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto comparison = compare_studies(measured_again(random), measured_again(random, 1.1, 0), 0.05);
    ASSERT_TRUE(comparison.ok());
    found += comparison->regressed ? 1 : 0;
    for (const SeriesChange& series : comparison->series)
      EXPECT_TRUE(series.time.change == Change::Same || !series.name.starts_with("vulkan")) << series.name;
    // Intervals of 4 %: single points are not certain, the series as a whole is.
    found_in_noise +=
        compare_studies(measured_again(random, 1, -1, 0.03), measured_again(random, 1.1, -1, 0.03), 0.05)
                ->regressed
            ? 1
            : 0;
  }
  EXPECT_EQ(found, kTrials);
  EXPECT_GE(found_in_noise, kTrials * 9 / 10);
}

TEST(CompareStudies, WithinTheToleranceOrFasterIsNoRegression) {
  std::mt19937 random(3);
  for (const double factor : {1.02, 0.8}) {
    const auto comparison = compare_studies(example_study(), measured_again(random, factor), 0.05);
    ASSERT_TRUE(comparison.ok());
    EXPECT_FALSE(comparison->regressed) << factor;
    for (const SeriesChange& series : comparison->series)
      EXPECT_EQ(series.time.change, factor < 1 ? Change::Faster : Change::Same);
  }
}

TEST(CompareStudies, APointMeasuredOnceProvesNothing) {
  Study before = example_study(), after = example_study();
  for (Study* study : {&before, &after}) {
    study->series.resize(1);
    study->crossovers.clear();
    study->series[0].points.resize(1);
    Timing& timing = study->series[0].points[0].timing;
    timing.interval = {timing.median_ms, timing.median_ms};
    timing.runs = 1;
  }
  after.series[0].points[0].timing.median_ms *= 1.01;
  after.series[0].points[0].timing.interval = {};
  EXPECT_FALSE(compare_studies(before, after, 0)->regressed);
}

TEST(CompareStudies, NamesWhatOnlyOneHas) {
  Study after = example_study();
  after.devices[1].name = "another GPU";
  after.series[0].points.pop_back();
  const auto comparison = compare_studies(example_study(), after, 0.05);
  ASSERT_TRUE(comparison.ok());
  const std::string text = comparison_text(*comparison, 0.05);
  EXPECT_NE(text.find("Only in the old study:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("vulkan:0 fp32 (AMD Radeon RX 6600), inference"), std::string::npos) << text;
  EXPECT_NE(text.find("vulkan:0 fp32 (another GPU), training"), std::string::npos) << text;
  EXPECT_NE(text.find("cpu:0 fp32 (AMD EPYC 9554 64-Core Processor), inference, batch 64"), std::string::npos)
      << text;
}

TEST(CompareStudies, FailuresAreRegressions) {
  const auto regressed = [](void (*change)(Study&), const char* expected) {
    Study after = example_study();
    change(after);
    const auto comparison = compare_studies(example_study(), after, 0.05);
    ASSERT_TRUE(comparison.ok()) << comparison.status().message();
    EXPECT_TRUE(comparison->regressed);
    EXPECT_NE(comparison_text(*comparison, 0.05).find(expected), std::string::npos)
        << comparison_text(*comparison, 0.05);
  };
  regressed([](Study& study) { study.series[0].points[2].error = "it crashed"; },
            "batch 4 fails now: it crashed");
  regressed([](Study& study) { study.series[1].difference->relative = 0.2; }, "its error is 0.2 now");
  regressed([](Study& study) { study.series[1].difference->relative = NAN; }, "its error is nan now");
  regressed([](Study& study) { study.targets[0].reached = false; },
            "cpu:0 fp32 no longer reaches accuracy 0.985");
}

TEST(CompareStudies, RefusesWhatHasNothingInCommon) {
  Study other = example_study("lenet5");
  other.model.hash = "other";
  EXPECT_EQ(compare_studies(example_study(), other, 0.05).status().code(), Code::InvalidArgument);
  Study elsewhere = example_study();
  for (StudyDevice& device : elsewhere.devices) device.name = "unknown";
  const auto refused = compare_studies(example_study(), elsewhere, 0.05);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("only in the new one: cpu:0 fp32 (unknown)"), std::string::npos);
}

TEST(CompareStudies, SaysWhatElseChanged) {
  Study after = example_study();
  after.machine.facts.governor = "performance";
  after.machine.versions[1].second = "3.0";
  after.model.hash = "1234567890abcdef";
  const auto comparison = compare_studies(example_study(), after, 0.05);
  ASSERT_TRUE(comparison.ok());
  const std::string text = comparison_text(*comparison, 0.05);
  EXPECT_NE(text.find("the governor changed from powersave to performance"), std::string::npos) << text;
  EXPECT_NE(text.find("the version of oneDNN changed from 2.7.3 to 3.0"), std::string::npos);
  EXPECT_NE(text.find("the compiled file changed"), std::string::npos);
  EXPECT_NE(text.find("old: Other programs kept 0.6 of 2 CPUs busy"), std::string::npos);
  const auto json = nlohmann::json::parse(comparison_json(*comparison, 0.05));
  EXPECT_FALSE(json["regressed"].get<bool>());
  EXPECT_EQ(json["series"].size(), 7u);
}

}  // namespace
}  // namespace librt::bench
