// The cost model: curves, profiles and their file, families of nodes, remembered runs.
#include "runtime/session/prepare/cost_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tools/rtbench/calibration_models.h"
#include "tools/rtbench/workload.h"

namespace librt::bench {
namespace {

TimeCurve curve_of(std::initializer_list<TimeCurve::Point> points) {
  TimeCurve curve;
  for (const TimeCurve::Point& point : points) curve.points[curve.count++] = point;
  return curve;
}

TEST(TimeCurves, AreInterpolatedBetweenLogarithms) {
  const TimeCurve curve = curve_of({{1e2f, 1e-6f}, {1e4f, 1e-5f}, {1e6f, 1e-3f}});
  EXPECT_NEAR(curve.at(1), 1e-6, 1e-11) << "a node of next to no work takes the least time";
  EXPECT_NEAR(curve.at(1e2), 1e-6, 1e-11);
  EXPECT_NEAR(curve.at(1e3), std::sqrt(1e-6 * 1e-5), 1e-10);
  EXPECT_NEAR(curve.at(1e6), 1e-3, 1e-8);
  EXPECT_NEAR(curve.at(3e6), 3e-3, 1e-8) << "above the last size in proportion";
}

class Profiles : public testing::Test {
 protected:
  Profiles() : folder_(std::filesystem::path(testing::TempDir()) / ("profiles-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    info_.backend = "cpu";
    info_.type = DeviceType::Cpu;
    info_.name = "Some CPU";
    info_.threads = 4;
  }
  ~Profiles() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path only_file() const { return std::filesystem::directory_iterator(folder_)->path(); }

  std::filesystem::path folder_;
  DeviceInfo info_;
};

TEST_F(Profiles, KeepCurvesRatesAndPower) {
  DeviceProfile written = typical_profile(info_);
  written.curves[static_cast<size_t>(Family::Conv)] = curve_of({{1e5f, 2e-6f}, {1e7f, 5e-5f}});
  written.rate_16bit = 3.5;
  written.watts = 42;
  written.measured_watts = true;
  ASSERT_TRUE(write_profile(folder_.string(), info_, written).ok());
  const DeviceProfile read = read_profile(folder_.string(), info_);
  EXPECT_TRUE(read.measured);
  EXPECT_TRUE(read.measured_watts);
  EXPECT_EQ(read.watts, 42);
  EXPECT_EQ(read.rate_16bit, 3.5);
  const TimeCurve& curve = read.curves[static_cast<size_t>(Family::Conv)];
  ASSERT_EQ(curve.count, 2u);
  EXPECT_FLOAT_EQ(curve.points[1].seconds, 5e-5f);
  EXPECT_EQ(read.curves[static_cast<size_t>(Family::Conv1x1)].count, 0u);
  // Another number of threads is another device to the model; a GPU has none.
  info_.threads = 1;
  EXPECT_FALSE(read_profile(folder_.string(), info_).measured);
}

TEST_F(Profiles, OfOtherThreadsAreScaled) {
  DeviceProfile written = typical_profile(info_);
  written.flops_f32 = 8e11;
  written.curves[static_cast<size_t>(Family::Conv)] = curve_of({{1e5f, 2e-6f}, {1e7f, 5e-5f}});
  written.curves[static_cast<size_t>(Family::Pool)] = curve_of({{1e5f, 2e-6f}});
  ASSERT_TRUE(write_profile(folder_.string(), info_, written).ok());
  info_.threads = 1;
  const DeviceProfile one = read_profile(folder_.string(), info_, 4);
  EXPECT_TRUE(one.measured);
  EXPECT_EQ(one.scaled_from, 4);
  EXPECT_EQ(one.flops_f32, 2e11);
  EXPECT_EQ(one.submit_seconds, written.submit_seconds);
  EXPECT_FLOAT_EQ(one.curves[static_cast<size_t>(Family::Conv)].points[1].seconds, 2e-4f);
  // Memory is shared: one thread reaches more than a quarter of what four do.
  EXPECT_FLOAT_EQ(one.curves[static_cast<size_t>(Family::Pool)].points[0].seconds, 3.2e-6f);
  EXPECT_LT(one.memory_bandwidth, written.memory_bandwidth);
  EXPECT_GT(one.memory_bandwidth, written.memory_bandwidth / 4);
  // What was measured for these threads comes first; others than all of them say nothing.
  EXPECT_FALSE(read_profile(folder_.string(), info_, 2).measured);
  ASSERT_TRUE(write_profile(folder_.string(), info_, typical_profile(info_)).ok());
  const DeviceProfile measured = read_profile(folder_.string(), info_, 4);
  EXPECT_TRUE(measured.measured);
  EXPECT_EQ(measured.scaled_from, 0);
}

TEST_F(Profiles, OfEarlierVersionsHaveRatesButNoCurves) {
  ASSERT_TRUE(write_profile(folder_.string(), info_, typical_profile(info_)).ok());
  std::ofstream(only_file()) << "flops_f32 1e11\nmemory_bandwidth 1e10\ntransfer_bandwidth 1e12\n"
                                "launch_seconds 1e-6\nsubmit_seconds 2e-6\ncurve conv 1e5 2e-6\n";
  const DeviceProfile read = read_profile(folder_.string(), info_);
  EXPECT_TRUE(read.measured) << read.problem.message();
  EXPECT_FALSE(read.measured_watts);
  EXPECT_EQ(read.flops_f32, 1e11);
  EXPECT_EQ(read.curves[static_cast<size_t>(Family::Conv)].count, 0u) << "its curves mean something else";
}

TEST_F(Profiles, GarbageIsNotRead) {
  DeviceProfile written = typical_profile(info_);
  written.curves[static_cast<size_t>(Family::Pool)] = curve_of({{1e5f, 2e-6f}});
  ASSERT_TRUE(write_profile(folder_.string(), info_, written).ok());
  const std::string rates =
      "flops_f32 1e11\nmemory_bandwidth 1e10\ntransfer_bandwidth 1e12\nlaunch_seconds 1e-6\n";
  for (const char* curve :
       {"curve pool 1e5 -1", "curve pool 1e5 nan", "curve pool 1e5", "curve pool 2e5 1 1e5 1", "curve pool x",
        "curve pool", "curve pool 1 1 2 1 3 1 4 1 5 1 6 1 7"}) {
    std::ofstream(only_file()) << rates << "submit_seconds 2e-6\ncurves 3\n" << curve << "\n";
    const DeviceProfile read = read_profile(folder_.string(), info_);
    EXPECT_TRUE(read.measured) << curve;
    const bool is_long = std::string_view(curve).size() > 30;
    EXPECT_EQ(read.curves[static_cast<size_t>(Family::Pool)].count, is_long ? TimeCurve::kMost : 0) << curve;
  }
  std::ofstream(only_file()) << rates << "submit_seconds inf\n";
  EXPECT_FALSE(read_profile(folder_.string(), info_).measured);
}

TEST_F(Profiles, RunsAreRememberedByWorkAndDevice) {
  const std::string folder = folder_.string();
  EXPECT_EQ(read_run(folder, 7, info_), 0);
  ASSERT_TRUE(write_run(folder, 7, info_, 0.25).ok());
  EXPECT_EQ(read_run(folder, 7, info_), 0.25);
  EXPECT_EQ(read_run(folder, 8, info_), 0);
  DeviceInfo other = info_;
  other.driver = "newer";
  EXPECT_EQ(read_run(folder, 7, other), 0);
  ASSERT_TRUE(write_run(folder, 7, other, 0.5).ok());
  ASSERT_TRUE(write_run(folder, 7, info_, 0.125).ok());
  EXPECT_EQ(read_run(folder, 7, info_), 0.125);
  EXPECT_EQ(read_run(folder, 7, other), 0.5);
}

TEST(NodeTimes, FollowFromRatesWhereNoCurveWasMeasured) {
  DeviceProfile profile;
  profile.flops_f32 = 1e12;
  profile.memory_bandwidth = 1e11;
  profile.launch_seconds = 1e-6;
  profile.rate_16bit = 4;
  Workload work;
  // A matmul reaches 0.8 of the peak: 8e9 operations take 10 ms, and in 16 bits a quarter of that.
  NodeWork node{.family = Family::Matmul, .flops = 8e9, .bytes = 1e6};
  EXPECT_NEAR(node_seconds(node, work, profile), 1e-6 + 1e-2, 1e-8);
  node.element_bytes = 2;
  EXPECT_NEAR(node_seconds(node, work, profile), 1e-6 + 2.5e-3, 1e-8);
  // Bound by its weights: 1e9 bytes take 10 ms.
  node = {.family = Family::Matmul, .flops = 1e6, .bytes = 1e9, .weight_bytes = 1e9};
  work.weight_bytes = 1e9;
  EXPECT_NEAR(node_seconds(node, work, profile), 1e-6 + 1e-2, 1e-8);
}

TEST(NodeTimes, OfFewChannelsAreThoseOfAWholeBlock) {
  DeviceProfile profile;
  profile.curves[static_cast<size_t>(Family::Conv)] = curve_of({{1e6f, 1e-5f}, {1e9f, 1e-2f}});
  profile.curves[static_cast<size_t>(Family::Elementwise)] = curve_of({{1, 1e-6f}, {1e9f, 1e-6f}});
  const Workload work;
  NodeWork node{.family = Family::Conv, .flops = 1e7, .bytes = 1};
  EXPECT_NEAR(node_seconds(node, work, profile), 1e-4, 1e-8);
  node.block_share = 0.25;
  EXPECT_NEAR(node_seconds(node, work, profile), 4e-4, 1e-8);
}

TEST(NodeTimes, OfAProfileWithoutDirectConvolutionsAreThoseOfOthers) {
  DeviceProfile profile;
  profile.curves[static_cast<size_t>(Family::Conv)] = curve_of({{1e6f, 1e-5f}, {1e9f, 1e-2f}});
  profile.curves[static_cast<size_t>(Family::Elementwise)] = curve_of({{1, 1e-6f}, {1e9f, 1e-6f}});
  const Workload work;
  const NodeWork node{.family = Family::ConvDirect, .flops = 1e7, .bytes = 1};
  EXPECT_NEAR(node_seconds(node, work, profile), 1e-4, 1e-8);
  profile.curves[static_cast<size_t>(Family::ConvDirect)] = curve_of({{1e6f, 2e-5f}, {1e9f, 2e-2f}});
  EXPECT_NEAR(node_seconds(node, work, profile), 2e-4, 1e-8);
}

// Element-wise kernels may be bound by instructions, as on a software device: they do not show its bandwidth.
TEST(NodeTimes, OfMovingBytesAreThoseOfTheFasterCurve) {
  DeviceProfile profile;
  profile.curves[static_cast<size_t>(Family::Elementwise)] = curve_of({{1e3f, 1e-6f}, {1e9f, 1.0f}});
  profile.curves[static_cast<size_t>(Family::MatrixVector)] = curve_of({{1e3f, 1e-6f}, {1e9f, 0.25f}});
  profile.curves[static_cast<size_t>(Family::Matmul)] = curve_of({{1, 1e-6f}, {1e12f, 1e-6f}});
  Workload work;
  work.weight_bytes = 2e9;
  NodeWork node{.family = Family::Matmul, .flops = 1, .bytes = 1e9};
  EXPECT_NEAR(node_seconds(node, work, profile), 0.25, 1e-6);
  node = {.family = Family::Matmul, .flops = 1, .bytes = 1, .weight_bytes = 1e9};
  EXPECT_NEAR(node_seconds(node, work, profile), 0.25, 1e-6) << "half of the weights' 0.5 s";
  node = {.family = Family::Elementwise, .bytes = 1e9};
  EXPECT_NEAR(node_seconds(node, work, profile), 1, 1e-6) << "its own curve stays";
}

// Half of the model's weights, which take 0.4 s in all; small ones stay in caches.
TEST(NodeTimes, OfFewRowsAreThoseOfReadingWeights) {
  DeviceProfile profile;
  profile.curves[static_cast<size_t>(Family::Elementwise)] = curve_of({{1, 1e-6f}, {1e9f, 1e-6f}});
  for (const Family family : {Family::Matmul, Family::Recurrent})
    profile.curves[static_cast<size_t>(family)] = curve_of({{1, 1e-5f}, {1e12f, 1e-5f}});
  profile.curves[static_cast<size_t>(Family::Weights)] = curve_of({{1e6f, 1e-3f}, {4e8f, 0.4f}});
  Workload work;
  work.weight_bytes = 4e8;
  NodeWork node{.family = Family::Matmul, .flops = 1, .bytes = 1, .weight_bytes = 2e8};
  EXPECT_NEAR(node_seconds(node, work, profile), 0.2, 1e-6);
  node.family = Family::Recurrent;
  EXPECT_NEAR(node_seconds(node, work, profile), 1e-5, 1e-9) << "its curve has its weights";
  work.weight_bytes = 5e5;
  node = {.family = Family::Matmul, .flops = 1, .bytes = 1, .weight_bytes = 5e5};
  EXPECT_NEAR(node_seconds(node, work, profile), 1e-5, 1e-9);
}

// A stride leaves out results, but everything is read.
TEST(NodeTimes, OfDepthwiseConvolutionsFollowTheirBytes) {
  DeviceProfile profile;
  profile.curves[static_cast<size_t>(Family::Elementwise)] = curve_of({{1, 1e-9f}, {1e9f, 1e-9f}});
  profile.curves[static_cast<size_t>(Family::Depthwise)] = curve_of({{1e6f, 1e-4f}, {1e9f, 1e-1f}});
  const Workload work;
  for (const double flops : {1e6, 4e6}) {
    const NodeWork node{.family = Family::Depthwise, .flops = flops, .bytes = 1e7};
    EXPECT_NEAR(node_seconds(node, work, profile), 1e-3, 1e-7);
  }
}

TEST(NodeTimes, OfARunAddUpWithTransfers) {
  DeviceProfile profile;
  profile.curves[static_cast<size_t>(Family::Elementwise)] = curve_of({{1, 1e-6f}, {1e9f, 1e-6f}});
  profile.flops_f32 = profile.memory_bandwidth = 1e12;
  profile.submit_seconds = 1e-5;
  profile.transfer_bandwidth = 1e9;
  Workload work;
  work.nodes.resize(3);
  work.input_bytes = 3000;
  work.output_bytes = 1000;
  EXPECT_NEAR(run_seconds(work, true, profile), 1.3e-5, 1e-10);
  EXPECT_NEAR(run_seconds(work, false, profile), 1.7e-5, 1e-10);
}

TEST(CalibrationModels, HaveNodesOfTheirFamilyOfOneSize) {
  for (size_t f = 0; f < kFamilies; ++f) {
    const auto family = static_cast<Family>(f);
    double before = 0;
    ASSERT_GE(calibration_sizes(family), 3u) << kFamilyNames[f];
    for (size_t size = 0; size < calibration_sizes(family); ++size) {
      std::string error;
      const auto made = calibration_model(family, size, 2, error);
      ASSERT_TRUE(made) << error;
      double work = 0;
      int count = 0;
      for (const NodeWork& node : made->work.nodes) {
        if (node.family != (family == Family::Weights ? Family::Matmul : family)) continue;
        ++count;
        const double its = is_bound_by_flops(family) ? node.flops : node.bytes;
        const bool same = its == work || count == 1 || family == Family::Reduction;  // of two operators
        EXPECT_TRUE(same) << kFamilyNames[f];
        work = its;
      }
      EXPECT_GE(count, 2) << kFamilyNames[f] << ", size " << size;
      EXPECT_GT(work, before) << kFamilyNames[f] << ", size " << size;
      before = work;
    }
  }
}

// LeNet-5: convolution to 6 channels, pooling of 6, convolution to 16, pooling, three matmuls.
TEST(Workloads, KnowTheShareOfABlockOfChannels) {
  std::string error;
  const auto model = open_model("zoo:lenet5", Mode::Infer, error);
  ASSERT_TRUE(model) << error;
  const auto work = model_work(*model, {}, error);
  ASSERT_TRUE(work) << error;
  std::vector<double> shares;
  for (const NodeWork& node : work->work.nodes)
    if (node.family != Family::Elementwise) shares.push_back(node.block_share);
  EXPECT_EQ(shares, (std::vector<double>{0.375, 0.375, 1, 1, 1, 1, 1}));
}

TEST(Workloads, AreEqualForEqualWorkOnly) {
  std::string error;
  const auto model = open_model("zoo:lenet5", Mode::Infer, error);
  ASSERT_TRUE(model) << error;
  const auto one = model_work(*model, {}, error), again = model_work(*model, {{"batch", 1}}, error);
  const auto eight = model_work(*model, {{"batch", 8}}, error);
  ASSERT_TRUE(one && again && eight) << error;
  EXPECT_EQ(one->work.hash, again->work.hash);
  EXPECT_NE(one->work.hash, eight->work.hash);
  EXPECT_EQ(one->extents.at("batch"), 1);
  EXPECT_GT(eight->live_bytes, one->live_bytes);
  EXPECT_EQ(eight->work.weight_bytes, one->work.weight_bytes);
  EXPECT_EQ(8 * one->work.input_bytes, eight->work.input_bytes);
  EXPECT_FALSE(model_work(*model, {{"batch", -1}}, error));
}

}  // namespace
}  // namespace librt::bench
