// How a run is submitted to a GPU that is slow by its profile: in the environment, layers that pretend the
// GPU and count submissions (RT_TEST_SUBMISSIONS), and the folder of the profile (RT_TEST_CACHE). Time is the
// test's own, so that other work on the machine changes no count.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/backend/registry.h"
#include "runtime/session/device/device_profile.h"
#include "runtime/session/session.h"
#include "tools/compiler/builder.h"

namespace {

// Nanoseconds; each reading of the clock is `tick` later.
std::atomic<int64_t> time_now = 0, tick = 1000;

}  // namespace

/// Takes the place of the C++ library's in this process, and so in the backend.
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
  return time_point(duration(time_now += tick));
}

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;

constexpr int64_t kRows = 64, kSide = 256;
constexpr int kLayers = 12;

/// x f32[64,256] through 12 matmuls, each with half of a permutation's matrix: results are exact.
std::shared_ptr<const ModelGraph> matmuls() {
  auto model = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &model->states);
  ValueId x = build.input("x", DType::F32, {{.extent = kRows}, {.extent = kSide}});
  for (int layer = 0; layer < kLayers; ++layer) {
    Floats weights(kSide * kSide);
    for (int64_t i = 0; i < kSide; ++i)
      weights[static_cast<size_t>(i * kSide + (i * 37 + layer) % kSide)] = 0.5f;
    x = build.emit(
        op::MatMulAttributes{},
        {x, build.constant({DType::F32, {kSide, kSide}}, Blob::copy_of(weights.data(), weights.size() * 4))});
  }
  build.output(x);
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

Result<Floats> run(Session& session) {
  Floats x(kRows * kSide);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) - 48;
  RT_TRY(session.set_input(0, {x.data(), {DType::F32, {kRows, kSide}}}, x.size() * sizeof(float)));
  RT_TRY(session.run());
  RT_ASSIGN(const TensorView view, session.output(0));
  return Floats(view.as<float>(), view.as<float>() + x.size());
}

/// A session on the GPU whose profile says that it computes `flops` per second.
Result<std::unique_ptr<Session>> session_at(const std::shared_ptr<const ModelGraph>& model, double flops) {
  const std::string folder = std::getenv("RT_TEST_CACHE");
  std::filesystem::create_directories(folder);
  RT_ASSIGN(const DevicePtr device, open_device("vulkan", {}));
  const DeviceProfile profile{.flops_f32 = flops,
                              .memory_bandwidth = 1e12,
                              .transfer_bandwidth = 1e12,
                              .launch_seconds = 1e-6,
                              .submit_seconds = 1e-6,
                              .watts = 1};
  RT_TRY(write_profile(folder, device->info(), profile));
  SessionOptions options{.backend = "vulkan"};
  options.cache_folder = folder;
  return Session::create(model, options);
}

/// The number of submissions of a run, whose results are compared with the reference's.
int submissions_of_run(Session& session, const Floats& expected) {
  const char* path = std::getenv("RT_TEST_SUBMISSIONS");
  std::filesystem::remove(path);
  const auto result = run(session);
  EXPECT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result.ok() && *result == expected);
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

class SlowGpu : public testing::Test {
 protected:
  void SetUp() override {
    const auto reference = Session::create(model, {.backend = "reference"});
    ASSERT_TRUE(reference.ok()) << reference.status().message();
    const auto result = run(**reference);
    ASSERT_TRUE(result.ok());
    expected = *result;
  }
  std::shared_ptr<const ModelGraph> model = matmuls();
  Floats expected;
};

TEST_F(SlowGpu, FastWorkIsOneSubmission) {
  const auto session = session_at(model, 1e13);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(submissions_of_run(**session, expected), 1);
}

// A matmul is estimated at 10.5 ms, and a submission may take 100. At first the device may be 8 times slower;
// each submission that was faster allows a larger one.
TEST_F(SlowGpu, NodesAreSpreadOverSubmissions) {
  const auto session = session_at(model, 1e9);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(submissions_of_run(**session, expected), 7);
  int last = 7;
  for (int i = 0; i < 60 && last > 1; ++i) last = submissions_of_run(**session, expected);
  EXPECT_EQ(last, 1);  // it is much faster than its profile says
}

// The same, on a device whose every submission takes 200 ms or more.
TEST_F(SlowGpu, SlowSubmissionsStaySmall) {
  const auto session = session_at(model, 1e9);
  ASSERT_TRUE(session.ok()) << session.status().message();
  tick = 200'000'000;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(submissions_of_run(**session, expected), kLayers) << i;
  tick = 1000;
}

// At 1.05 s a matmul is submitted in parts, at first of one workgroup each.
TEST_F(SlowGpu, DispatchesAreSubmittedInParts) {
  const auto session = session_at(model, 1e7);
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(submissions_of_run(**session, expected), 22);
}

}  // namespace
}  // namespace librt
