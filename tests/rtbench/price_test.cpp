// Prices: the numbers are worked out by hand beside each case.
#include "tools/rtbench/price.h"

#include <gtest/gtest.h>

#include <cmath>

namespace librt::bench {
namespace {

const std::vector<std::string> kKnown{"cpu:0", "cuda:0", "cuda:1"};

std::string refusal(const std::string& text) {
  std::string error;
  EXPECT_FALSE(parse_prices(text, kKnown, error).has_value()) << text;
  return error;
}

TEST(Prices, AreReadByDevice) {
  std::string error;
  const auto prices = parse_prices("cpu=0.17,cuda=3.99,cuda:1=5", kKnown, error);
  ASSERT_TRUE(prices) << error;
  EXPECT_EQ(price_of(*prices, "cpu:0"), 0.17);
  EXPECT_EQ(price_of(*prices, "cuda:0"), 3.99);
  EXPECT_EQ(price_of(*prices, "cuda:1"), 5.0);
  EXPECT_FALSE(price_of(*prices, "vulkan:0").has_value());
  EXPECT_TRUE(parse_prices("cpu=0", kKnown, error)) << "one's own machine";
}

TEST(Prices, BrokenListsAreRefusedWithTheEntry) {
  EXPECT_EQ(refusal("vulkan=1"),
            "--price: there is no device 'vulkan'; the devices are cpu:0, cuda:0, cuda:1");
  EXPECT_EQ(refusal("cuda:2=1"),
            "--price: there is no device 'cuda:2'; the devices are cpu:0, cuda:0, cuda:1");
  EXPECT_EQ(refusal("cpu=-1"), "--price: cpu: expected a number of at least 0, found '-1'");
  EXPECT_EQ(refusal("cpu=nan"), "--price: cpu: expected a number of at least 0, found 'nan'");
  EXPECT_EQ(refusal("cpu=inf"), "--price: cpu: expected a number of at least 0, found 'inf'");
  EXPECT_EQ(refusal("cpu=0.1x"), "--price: cpu: expected a number of at least 0, found '0.1x'");
  EXPECT_EQ(refusal("cpu="), "--price: cpu: expected a number of at least 0, found ''");
  EXPECT_EQ(refusal("cpu=1,cpu=2"), "--price: 'cpu' is given twice");
  EXPECT_EQ(refusal("cpu"), "--price: expected DEVICE=PRICE per hour, found 'cpu'");
  EXPECT_EQ(refusal(""), "--price: expected DEVICE=PRICE per hour, found ''");
  EXPECT_EQ(refusal("cpu=1,"), "--price: expected DEVICE=PRICE per hour, found ''");
  EXPECT_EQ(refusal("=1"), "--price: expected DEVICE=PRICE per hour, found '=1'");
  std::string error;
  EXPECT_FALSE(parse_electricity("-0.3", error));
  EXPECT_EQ(error, "--electricity (per kWh): expected a number of at least 0, found '-0.3'");
  EXPECT_FALSE(parse_electricity("", error));
  EXPECT_EQ(parse_electricity("0.30", error), 0.30);
}

TEST(Costs, OfAMillionSamplesAndAnEpoch) {
  // 3.6 per hour is 0.001 per second; 100 samples per second: 0.00001 each.
  Costs gpu{.device = "cuda:0", .per_hour = 3.6, .samples_per_second = 100};
  EXPECT_NEAR(per_million(gpu), 10.0, 1e-9);
  EXPECT_NEAR(per_epoch(gpu, 60000), 0.6, 1e-9);
  // 300 W at 0.40 per kWh: 0.12 per hour more.
  gpu.electricity_per_kwh = 0.40;
  gpu.watts = 300;
  EXPECT_NEAR(hourly(gpu), 3.72, 1e-12);
  EXPECT_NEAR(per_million(gpu), 3.72 / 3600 / 100 * 1e6, 1e-9);
  // Without a known power electricity is not guessed.
  gpu.watts.reset();
  EXPECT_NEAR(hourly(gpu), 3.6, 1e-12);
  EXPECT_TRUE(std::isinf(per_million({.device = "cpu:0", .per_hour = 1})));
}

TEST(Costs, IdleTimeCounts) {
  // 3.6 per hour for 100 samples per second at most. At 10 samples per second the hour costs the same, so a
  // sample costs ten times as much.
  Costs gpu{.device = "cuda:0", .per_hour = 3.6, .samples_per_second = 100};
  EXPECT_NEAR(hourly_at(gpu, 10), 3.6, 1e-12);
  EXPECT_NEAR(per_million_at(gpu, 10), 100.0, 1e-9);
  EXPECT_NEAR(per_million_at(gpu, 100), 10.0, 1e-9) << "one device, fully used";
  // 101 samples per second need two.
  EXPECT_NEAR(hourly_at(gpu, 101), 7.2, 1e-12);
  // 50 W idle, 250 W busy, 1 per kWh: at 25 % load 50 + 0.25 * 200 = 100 W: 0.1 per hour.
  gpu.electricity_per_kwh = 1;
  gpu.watts = 250;
  gpu.idle_watts = 50;
  EXPECT_NEAR(hourly_at(gpu, 25), 3.7, 1e-12);
  // Two devices at 150 samples per second: 2 * 50 + 1.5 * 200 = 400 W.
  EXPECT_NEAR(hourly_at(gpu, 150), 7.6, 1e-12);
}

TEST(Costs, TheCheapestDeviceDependsOnTheLoad) {
  // The CPU: 0.2 for 10 samples per second, the GPU: 1.0 for 200. Five CPUs cost as much as one GPU, so the
  // sixth, needed above 50 per second, makes the GPU cheaper; at exactly 1.0 each the earlier one is kept.
  const std::vector<Costs> devices{{.device = "cpu:0", .per_hour = 0.2, .samples_per_second = 10},
                                   {.device = "cuda:0", .per_hour = 1.0, .samples_per_second = 200}};
  const auto ranges = cheapest_by_load(devices, 200);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].device, 0u);
  EXPECT_NEAR(ranges[0].to, 50, 1e-9);
  EXPECT_EQ(ranges[1].device, 1u);
  EXPECT_NEAR(ranges[1].from, 50, 1e-9);
  EXPECT_NEAR(ranges[1].to, 200, 1e-9);
  // Just above 200 a second GPU would cost 1.0 more than one CPU beside it does not: devices are not mixed,
  // so 21 CPUs (4.2) against two GPUs (2.0).
  EXPECT_EQ(cheapest_by_load(devices, 210).back().device, 1u);
}

TEST(Costs, LinesOfElectricityCrossBetweenTheSteps) {
  // No rent. A: 10 W idle, 110 W at 100 per second: 10 + load. B: 40 W idle, 90 W: 40 + load / 2. Equal where
  // 10 + load = 40 + load / 2: at 60.
  const auto own = [](double idle, double busy) {
    return Costs{.electricity_per_kwh = 1, .watts = busy, .idle_watts = idle, .samples_per_second = 100};
  };
  const auto ranges = cheapest_by_load({own(10, 110), own(40, 90)}, 100);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_NEAR(ranges[0].to, 60, 1e-9);
  EXPECT_EQ(ranges[1].device, 1u);
}

TEST(Costs, ADeviceWithoutThroughputIsNeverTheCheapest) {
  const auto ranges =
      cheapest_by_load({{.device = "a"}, {.device = "b", .per_hour = 9, .samples_per_second = 1}}, 5);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].device, 1u);
  EXPECT_TRUE(cheapest_by_load({}, 5).empty());
}

TEST(Costs, TheBatchFromWhichTheOtherIsCheaper) {
  EXPECT_EQ(cheaper_from({{1, 1.0}, {8, 1.0}, {32, 1.0}}, {{1, 5.0}, {8, 0.9}, {32, 0.2}}), 8);
  EXPECT_EQ(cheaper_from({{1, 1.0}, {8, 1.0}, {32, 1.0}}, {{1, 0.5}, {8, 1.5}, {32, 0.2}}), 32);
  EXPECT_FALSE(cheaper_from({{1, 1.0}, {8, 1.0}}, {{1, 0.5}, {8, 1.0}}).has_value());
  EXPECT_FALSE(cheaper_from({{1, 1.0}}, {{2, 0.5}}).has_value()) << "no batch was measured on both";
}

}  // namespace
}  // namespace librt::bench
