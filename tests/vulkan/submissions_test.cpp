// How work is submitted: the pace of a device, parts of command lists, runs that are stopped between them.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "backends/vulkan/kernel.h"
#include "runtime/core/function.h"
#include "tests/vulkan/lavapipe.h"

namespace librt::vulkan {
namespace {

TEST(VulkanPace, LearnsFromTheSlowest) {
  Pace pace(0.4);
  EXPECT_DOUBLE_EQ(pace.budget(), 0.05);  // 8 times as slow as estimated, until it is known
  pace.learn(0.01, 0.01, true);
  EXPECT_DOUBLE_EQ(pace.factor(), 6);  // one fast submission does not say much
  for (int i = 0; i < 20; ++i) pace.learn(0.01, 0.02, true);
  EXPECT_DOUBLE_EQ(pace.factor(), 2);
  pace.learn(0.01, 0.3, false);  // it may have ended long before it was asked for
  EXPECT_DOUBLE_EQ(pace.factor(), 2);
  pace.learn(0.01, 0.3, true);
  EXPECT_DOUBLE_EQ(pace.factor(), 30);
  for (int i = 0; i < 100; ++i) pace.learn(1, 1e-9, true);
  EXPECT_DOUBLE_EQ(pace.factor(), 1.0 / 16);
  pace.learn(1e-6, 1e-4, true);  // what a submission costs
  pace.learn(0, 1, true);
  EXPECT_DOUBLE_EQ(pace.factor(), 1.0 / 16);
}

TEST(VulkanPace, SoftwareIsNotLimited) {
  EXPECT_FALSE(Pace().is_limited());
  EXPECT_GT(Pace().budget(), 1e9);
  for (const uint32_t vendor : {0x1002u, 0x10deu, 0x8086u, 0x5143u, 0x14e4u, 0x13b5u, 0u}) {
    EXPECT_GE(submission_limit(vendor), 0.1);
    EXPECT_LE(submission_limit(vendor), 0.5);
  }
}

/// The device for one test, with another pace.
class Paced {
 public:
  Paced(Device& device, double limit) : device_(cast(device)) { device_.pace() = Pace(limit); }
  ~Paced() { device_.pace() = Pace(); }

 private:
  VulkanDevice& device_;
};

/// A list that sets `spans` words, a span each, that are estimated to take `seconds`.
struct Words {
  Words(Device& device, size_t spans, float seconds, const StopSignal* stop = nullptr,
        uint32_t stoppable = 0) {
    slab = device.allocate(spans * 4).value();
    const std::vector<uint32_t> zeros(spans, 0);
    EXPECT_TRUE(device.upload(*slab, 0, std::as_bytes(std::span(zeros))).ok());
    Slab* const slots[] = {slab.get()};
    const std::vector<float> estimates(spans, seconds);
    commands = device
                   .begin({.slots = slots,
                           .spans = static_cast<uint32_t>(spans),
                           .span_seconds = estimates,
                           .stop = stop,
                           .stoppable = stoppable})
                   .value();
    for (uint32_t i = 0; i < spans; ++i) {
      EXPECT_TRUE(commands->mark(i).ok());
      EXPECT_TRUE(static_cast<VulkanCommands&>(*commands).fill({0, uint64_t{i} * 4, 4}, i + 1).ok());
    }
    EXPECT_TRUE(commands->finish().ok());
  }
  std::vector<uint32_t> read(Device& device) const {
    std::vector<uint32_t> words(slab->size() / 4);
    EXPECT_TRUE(device.download(*slab, 0, std::as_writable_bytes(std::span(words))).ok());
    return words;
  }
  SlabPtr slab;
  CommandListPtr commands;
};

TEST(VulkanSubmissions, EstimatesDivideAList) {
  RT_LAVAPIPE(device);
  auto& vulkan = cast(device);
  const Paced paced(device, 0.8);  // 0.1 estimated seconds at once
  const auto submissions_of = [&](float seconds) {
    const Words words(device, 8, seconds);
    const uint64_t before = vulkan.submissions();
    EXPECT_TRUE(words.commands->submit().ok());
    EXPECT_TRUE(words.commands->wait().ok());
    EXPECT_EQ(words.read(device), (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
    return vulkan.submissions() - before;
  };
  EXPECT_EQ(submissions_of(0), 1u);
  EXPECT_EQ(submissions_of(0.01f), 1u);
  vulkan.pace() = Pace(0.8);
  EXPECT_EQ(submissions_of(0.045f), 4u);
  vulkan.pace() = Pace();
  EXPECT_EQ(submissions_of(10), 1u);
}

TEST(VulkanSubmissions, StopBetweenParts) {
  RT_LAVAPIPE(device);
  const Paced paced(device, 0.8);
  StopSignal stop;
  const auto run = [&](uint32_t stoppable) {
    const Words words(device, 4, 0.09f, &stop, stoppable);
    stop.begin(0, 0);
    stop.request();
    const Status status = words.commands->submit();
    EXPECT_TRUE(words.commands->wait().ok());
    stop.end(status);
    stop.withdraw();
    cast(device).pace() = Pace(0.8);
    EXPECT_EQ(status.ok(), words.read(device).back() == 4) << status.message();
    EXPECT_TRUE(status.ok() || status.code() == Code::Cancelled);
    return words.read(device);
  };
  EXPECT_EQ(run(4), (std::vector<uint32_t>{1, 0, 0, 0}));  // the first part was submitted
  EXPECT_EQ(run(2), (std::vector<uint32_t>{1, 0, 0, 0}));
  EXPECT_EQ(run(1), (std::vector<uint32_t>{1, 2, 3, 4}));  // the first span writes a state: all or nothing
}

TEST(VulkanSubmissions, DispatchTooLongIsSaid) {
  RT_LAVAPIPE(device);
  auto& vulkan = cast(device);
  const Paced paced(device, 0.8);
  const SlabPtr slab = device.allocate(64).value();
  Slab* const slots[] = {slab.get()};
  const float seconds[] = {2};
  const auto commands = device.begin({.slots = slots, .spans = 1, .span_seconds = seconds}).value();
  Program program("test");
  program.dispatch_each(Shader::optimizer_scalars, 1, 1)
      .spec(0)
      .spec(0)
      .spec(0)
      .push(-1.0f)
      .push(-1.0f)
      .push(1.0f)
      .read(0, in(0))
      .write(4, out(0));
  const BufferRef input{0, 0, 4}, output{0, 32, 24};
  ASSERT_TRUE(commands->mark(0).ok());
  for (int i = 0; i < 2; ++i) {
    const Status status = program.record(*commands, {{&input, 1}, {&output, 1}, {}, {}});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  const auto said = std::ranges::count_if(vulkan.info().features, [](const std::string& feature) {
    return feature.starts_with("long work: optimizer_scalars: 1 groups take an estimated 16000 ms");
  });
  EXPECT_EQ(said, 1);
}

// In rows of the grid, submitted one by one: every group must find its index.
TEST(VulkanSubmissions, PartsOfADispatchComputeTheWhole) {
  RT_LAVAPIPE(device);
  auto& vulkan = cast(device);
  const Paced paced(device, 0.08);
  constexpr uint64_t kMost = 4096;
  const SlabPtr slab = device.allocate(2 * kMost * 4).value();
  Slab* const slots[] = {slab.get()};
  std::vector<float> x(kMost);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 2000;
  for (const uint64_t count : {64u, 1000u, 4096u}) {
    vulkan.pace() = Pace(0.08);  // 0.01 estimated seconds at once
    std::vector<float> y(kMost);
    ASSERT_TRUE(device.upload(*slab, 0, std::as_bytes(std::span(x))).ok());
    ASSERT_TRUE(device.upload(*slab, kMost * 4, std::as_bytes(std::span(y))).ok());
    const float seconds[] = {0.065f};
    const auto commands = device.begin({.slots = slots, .spans = 1, .span_seconds = seconds}).value();
    Program program("test");
    program.dispatch_each(Shader::unary, static_cast<int64_t>(count / 4), 8)
        .spec(static_cast<uint32_t>(Function::Abs))
        .spec(0)
        .push(count / 4)
        .push(0.0f)
        .push(0.0f)
        .read(0, in(0))
        .write(1, out(0));
    const BufferRef input{0, 0, count * 4}, output{0, kMost * 4, count * 4};
    ASSERT_TRUE(commands->mark(0).ok());
    const Status status = program.record(*commands, {{&input, 1}, {&output, 1}, {}, {}});
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(commands->finish().ok());
    const uint64_t before = vulkan.submissions();
    ASSERT_TRUE(commands->submit().ok());
    ASSERT_TRUE(commands->wait().ok());
    EXPECT_GE(vulkan.submissions() - before, count == 64 ? 2u : 4u);  // 2 groups, 32, 128
    ASSERT_TRUE(device.download(*slab, kMost * 4, std::as_writable_bytes(std::span(y))).ok());
    for (size_t i = 0; i < kMost; ++i) ASSERT_EQ(y[i], i < count ? std::abs(x[i]) : 0.0f) << i;
  }
}

}  // namespace
}  // namespace librt::vulkan
