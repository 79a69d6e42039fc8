// The catalogue of devices, and predictions from it.
#include "tools/rtbench/what_if.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace librt::bench {
namespace {

// An entry with one field replaced; null removes it.
std::string file_with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json entry{{"name", "gpu"},
                       {"title", "A GPU"},
                       {"kind", "discrete GPU"},
                       {"peak_tflops", {{"fp32", 10}, {"fp16", 80}}},
                       {"memory_bandwidth_gb_s", 500},
                       {"memory_gb", 8},
                       {"watts", 200},
                       {"source", "https://example.org/gpu"}};
  if (value.is_null())
    entry.erase(key);
  else if (!key.empty())
    entry[key] = value;
  return nlohmann::json{{"devices", {entry}}}.dump();
}

std::string problem_of(const std::string& text) {
  std::string error;
  EXPECT_FALSE(parse_catalogue(text, "F.json", error)) << text;
  return error;
}

TEST(Catalogue, ThatIsShippedIsValid) {
  std::string error;
  const auto devices = read_catalogue(RT_CATALOGUE, error);
  ASSERT_TRUE(devices) << error;
  EXPECT_GE(devices->size(), 15u);
  std::set<DeviceType> types;
  for (const DeviceDescription& device : *devices) {
    types.insert(device.type);
    EXPECT_EQ(device.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
        << device.name;
    for (const auto& [precision, rate] : device.peak_flops)
      EXPECT_GE(rate, device.peak_flops.at("fp32")) << device.name << " in " << precision;
  }
  EXPECT_EQ(types.size(), 3u);
}

TEST(Catalogue, FieldsHaveTheUnitsOfTheirKeys) {
  std::string error;
  const auto devices = parse_catalogue(file_with("launch_us", 5), "F.json", error);
  ASSERT_TRUE(devices) << error;
  const DeviceDescription& device = devices->at(0);
  EXPECT_EQ(device.peak_flops.at("fp16"), 80e12);
  EXPECT_EQ(device.memory_bandwidth, 500e9);
  EXPECT_EQ(device.memory_bytes, 8e9);
  EXPECT_DOUBLE_EQ(device.launch_seconds, 5e-6);
  EXPECT_EQ(device.watts, 200);
  ASSERT_EQ(device.assumed.size(), 2u) << "transfer_gb_s and submit_us";
  EXPECT_EQ(device.assumed[0], "transfer_gb_s = 10");
}

TEST(Catalogue, ErrorsNameFileEntryAndField) {
  EXPECT_EQ(problem_of(file_with("memory_bandwidth_gb_s", nullptr)),
            "F.json: entry 1 'gpu': 'memory_bandwidth_gb_s': is missing; it is in GB/s");
  EXPECT_EQ(
      problem_of(file_with("memory_bandwidth_gb_s", 500000)),
      "F.json: entry 1 'gpu': 'memory_bandwidth_gb_s': expected a number of GB/s from 0.5 to 50000, found "
      "500000");
  EXPECT_EQ(
      problem_of(file_with("memory_bandwidth_gb_s", "500 GB/s")),
      "F.json: entry 1 'gpu': 'memory_bandwidth_gb_s': expected a number of GB/s from 0.5 to 50000, found "
      "\"500 GB/s\"");
  EXPECT_EQ(problem_of(file_with("watts", -1)),
            "F.json: entry 1 'gpu': 'watts': expected a number of W from 0.5 to 5000, found -1");
  EXPECT_NE(problem_of(file_with("memory_bandwith", 1)).find("'memory_bandwith': is unknown; an entry has "),
            std::string::npos);
  EXPECT_EQ(problem_of(file_with("peak_tflops", {{"fp16", 1}})),
            "F.json: entry 1 'gpu': 'peak_tflops.fp32': is missing");
  EXPECT_EQ(problem_of(file_with("peak_tflops", {{"fp32", 1}, {"fp8", 1}})),
            "F.json: entry 1 'gpu': 'peak_tflops.fp8': expected one of fp32, tf32, fp16, bf16, int8");
  EXPECT_NE(problem_of(file_with("peak_tflops", 12)).find("'peak_tflops': expected an object"),
            std::string::npos);
  EXPECT_EQ(
      problem_of(file_with("kind", "toaster")),
      "F.json: entry 1 'gpu': 'kind': expected one of CPU, integrated GPU, discrete GPU, found 'toaster'");
  EXPECT_EQ(problem_of(file_with("source", "a friend")),
            "F.json: entry 1 'gpu': 'source': expected a URL, found 'a friend'");
  EXPECT_EQ(problem_of(file_with("name", nullptr)), "F.json: entry 1: 'name': is missing");
  EXPECT_EQ(problem_of("{"), "F.json: is not valid JSON");
  EXPECT_EQ(problem_of("[]"), "F.json: expected an object with 'devices', a list of at least one entry");
  EXPECT_EQ(problem_of(R"({"devices": []})"),
            "F.json: expected an object with 'devices', a list of at least one entry");
  EXPECT_EQ(problem_of(R"({"devices": [7]})"), "F.json: entry 1: expected an object, found number");
  nlohmann::json twice = nlohmann::json::parse(file_with("", 0));
  twice["devices"].push_back(twice["devices"][0]);
  EXPECT_EQ(problem_of(twice.dump()), "F.json: entry 2 'gpu': 'name': there are two entries of this name");
  std::string error;
  EXPECT_FALSE(read_catalogue("/no/such.json", error));
  EXPECT_NE(error.find("/no/such.json"), std::string::npos);
}

Candidate candidate(const std::string& name, double flops, double bandwidth, double fixed) {
  Candidate made{.name = name,
                 .title = name,
                 .basis = "data sheet",
                 .host_memory = true,
                 .optimism = 1.5,
                 .pessimism = 2.5};
  made.profile.flops_f32 = flops;
  made.profile.memory_bandwidth = bandwidth;
  made.profile.transfer_bandwidth = bandwidth;
  made.profile.launch_seconds = made.profile.submit_seconds = fixed;
  made.watts = 100;
  return made;
}

class WhatIf : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    model_ = open_model("zoo:mlp", Mode::Infer, error);
    ASSERT_TRUE(model_) << error;
  }
  Prediction predict(std::vector<Candidate> candidates, const WhatIfOptions& options) {
    std::string error;
    auto prediction = what_if(*model_, std::move(candidates), options, error);
    EXPECT_TRUE(prediction) << error;
    return prediction ? *prediction : Prediction{};
  }
  std::optional<BenchModel> model_;
};

TEST_F(WhatIf, ADeviceWithSmallFixedCostsIsOvertakenByOneWithHighRates) {
  const Prediction prediction = predict(
      {candidate("big", 1e13, 1e12, 1e-4), candidate("small", 1e10, 1e10, 1e-6)}, {.batches = {1, 3}});
  ASSERT_EQ(prediction.crossovers.size(), 1u);
  const PredictedCrossover& crossover = prediction.crossovers[0];
  EXPECT_EQ(crossover.below, 1u);
  EXPECT_EQ(crossover.above, 0u);
  EXPECT_GT(crossover.batch, 1);
  const auto at = [&](size_t device, int64_t batch) {
    for (const PredictedPoint& point : prediction.devices[device].points)
      if (point.batch == batch) return point.samples_per_second;
    return 0.0;
  };
  EXPECT_LT(at(0, 1), at(1, 1));
  EXPECT_GT(at(0, 64), at(1, 64));
  EXPECT_GT(at(0, 3), 0) << "a batch that was asked for";
  for (const PredictedDevice& device : prediction.devices) {
    EXPECT_GT(device.knee, 0);
    EXPECT_FALSE(device.knee_reason.empty());
    for (const PredictedPoint& point : device.points) {
      EXPECT_LT(point.least_ms, point.milliseconds);
      EXPECT_GT(point.most_ms, point.milliseconds);
      EXPECT_NEAR(point.work_share + point.fixed_share + point.transfer_share, 1, 1e-9);
      EXPECT_NEAR(*point.joules_per_sample, 100 / point.samples_per_second, 1e-9);
      EXPECT_FALSE(point.cost_per_million) << "no price was given";
    }
  }
}

TEST_F(WhatIf, MemoryEndsTheSweep) {
  Candidate tiny = candidate("tiny", 1e12, 1e12, 1e-3);
  tiny.memory_bytes = 3e6;  // weights of 2.6 MB, and 6 KB or more for each sample
  const Prediction prediction = predict({tiny}, {});
  EXPECT_EQ(prediction.devices[0].knee_reason.substr(0, 20), "no memory for batch ");
  tiny.memory_bytes = 1e6;
  const Prediction none = predict({tiny}, {});
  EXPECT_EQ(none.devices[0].device.problem, "no memory for batch 1");
}

TEST_F(WhatIf, PricesGiveCostsAndTheCheapestByLoad) {
  const Prediction prediction =
      predict({candidate("big", 1e13, 1e12, 1e-5), candidate("small", 1e10, 1e10, 1e-6)},
              {.prices = Prices{{"big", 4.0}, {"small", 0.1}}});
  const PredictedPoint& point = prediction.devices[1].points[0];
  EXPECT_NEAR(*point.cost_per_million, 0.1 / 3600 / point.samples_per_second * 1e6, 1e-9);
  ASSERT_FALSE(prediction.loads.empty());
  EXPECT_EQ(prediction.loads.front().device, 1u) << "at little load the cheaper one";
}

TEST_F(WhatIf, EverythingIsMarkedAsPredicted) {
  const Prediction prediction = predict({candidate("gpu", 1e13, 1e12, 1e-5)}, {});
  EXPECT_NE(what_if_text(prediction).find("PREDICTED"), std::string::npos);
  const auto json = nlohmann::json::parse(what_if_json(prediction));
  EXPECT_TRUE(json["predicted"]);
  EXPECT_TRUE(json["devices"][0]["predicted"]);
  EXPECT_GT(json["devices"][0]["points"][0]["most_ms"], json["devices"][0]["points"][0]["ms"]);
}

TEST(Candidates, NeedThePeakOfThePrecision) {
  std::string error;
  const auto devices = parse_catalogue(file_with("", 0), "F.json", error);
  ASSERT_TRUE(devices) << error;
  EXPECT_EQ(candidate_of(devices->at(0), "int8").problem, "its entry states no peak rate of int8");
  EXPECT_EQ(candidate_of(devices->at(0), "").problem, "");
  // Tensor cores: half of 80 / 10.
  EXPECT_DOUBLE_EQ(candidate_of(devices->at(0), "fp16").profile.rate_16bit, 4);
}

}  // namespace
}  // namespace librt::bench
