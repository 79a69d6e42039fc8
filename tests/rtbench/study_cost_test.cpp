// Costs of a study's points: prices by the hour, electricity, what is said where power is not known.
#include <gtest/gtest.h>

#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/study/cost.h"
#include "tools/rtbench/study/verdict.h"

namespace librt::bench {
namespace {

Point point(int64_t batch, double ms) {
  Point made;
  made.batch = batch;
  made.timing.median_ms = ms;
  made.timing.interval = {ms * 0.99, ms * 1.01};
  set_throughput(made);
  return made;
}

// cpu: 100 samples/s at any batch. cuda: 200 at batch 1, 3200 at batch 16.
Study priced() {
  Study study;
  study.devices.resize(2);
  study.devices[0].id = "cpu:0";
  study.devices[1].id = "cuda:0";
  study.devices[0].price_per_hour = 0.36;
  study.devices[1].price_per_hour = 3.6;
  study.series = {{.device = 0, .precision = "fp32", .points = {point(1, 10), point(16, 160)}},
                  {.device = 1, .precision = "fp32", .points = {point(1, 5), point(16, 5)}}};
  study.crossovers = {{.below = 0, .above = 1}};
  return study;
}

std::string said(const Study& study) {
  std::string all;
  for (const Sentence& sentence : verdict_of(study))
    if (sentence.about == Sentence::About::Cost) all += sentence.text + "\n";
  return all;
}

TEST(StudyCost, OfAMillionSamples) {
  Study study = priced();
  add_costs(study);
  // 10^6 samples at 100 samples/s take 10^4 s, of 0.36 / 3600 each.
  EXPECT_NEAR(study.series[0].points[0].cost.per_million_samples.value_or(0), 1.0, 1e-9);
  EXPECT_NEAR(study.series[1].points[0].cost.per_million_samples.value_or(0), 5.0, 1e-9);
  EXPECT_NEAR(study.series[1].points[1].cost.per_million_samples.value_or(0), 0.3125, 1e-9);
  EXPECT_TRUE(study.series[0].points[0].cost.reason.empty());
  EXPECT_FALSE(study.series[0].points[0].cost.per_epoch);
  ASSERT_FALSE(study.load_crossovers.empty());
  EXPECT_EQ(study.load_crossovers[0].below, 0u);
  EXPECT_EQ(study.load_crossovers[0].above, 1u);
  // Ten cpus cost as much as one cuda device, and do 1000 samples/s.
  EXPECT_NEAR(study.load_crossovers[0].samples_per_second, 1000, 101);
  const std::string text = said(study);
  EXPECT_NE(
      text.find(
          "Cheapest, inference at full load: cuda:0 in fp32 at batch 16 with 0.3125 for a million samples"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("fp32 inference: a sample costs less on cuda:0 than on cpu:0 from batch 16 on."),
            std::string::npos)
      << text;
}

TEST(StudyCost, ElectricityCountsWherePowerIsKnown) {
  Study study = priced();
  study.electricity_per_kwh = 0.5;
  study.series[0].points[0].energy.watts = 72;  // 0.072 kWh an hour: 0.036
  add_costs(study);
  EXPECT_NEAR(study.series[0].points[0].cost.per_million_samples.value_or(0), 1.1, 1e-9);
  EXPECT_TRUE(study.series[0].points[0].cost.reason.empty());
  EXPECT_NEAR(study.series[1].points[0].cost.per_million_samples.value_or(0), 5.0, 1e-9);
  EXPECT_EQ(study.series[1].points[0].cost.reason, "without electricity: the power of cuda:0 is not known");
}

TEST(StudyCost, WithoutAPriceThereIsNone) {
  Study study = priced();
  study.devices[1].price_per_hour.reset();
  add_costs(study);
  EXPECT_FALSE(study.series[1].points[0].cost.per_million_samples);
  EXPECT_EQ(study.series[1].points[0].cost.reason, "no --price for cuda:0");
  EXPECT_TRUE(study.load_crossovers.empty());
  study = priced();
  for (StudyDevice& device : study.devices) device.price_per_hour.reset();
  add_costs(study);
  EXPECT_TRUE(study.series[0].points[0].cost.reason.empty()) << "no cost was asked for";
  EXPECT_EQ(said(study), "");
}

TEST(StudyCost, OfATarget) {
  Study study = priced();
  study.electricity_per_kwh = 0.36;
  study.targets = {{.device = 0, .precision = "fp32", .reached = true, .seconds = 1800, .epochs = 4}};
  study.targets[0].total_joules = 3.6e6;
  add_costs(study);
  EXPECT_NEAR(study.targets[0].total_cost.value_or(0), 0.18 + 0.36, 1e-9);
  EXPECT_NEAR(study.targets[0].cost.per_epoch.value_or(0), 0.135, 1e-9);
}

}  // namespace
}  // namespace librt::bench
