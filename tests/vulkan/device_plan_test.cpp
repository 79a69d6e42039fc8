// Kernel configuration for hypothetical devices; needs no driver.
#include <algorithm>
#include <cstdio>

#include "backends/vulkan/device/device_plan.h"

#include <gtest/gtest.h>

#include "backends/vulkan/dispatch/commands.h"
#include "backends/vulkan/dispatch/pipeline_cache_file.h"
#include "backends/vulkan/dispatch/strided_space.h"

namespace librt::vulkan {
namespace {

DeviceFacts device(const char* name, DeviceType type) {
  DeviceFacts facts;
  facts.name = name;
  facts.uuid = text("00ff", static_cast<int>(type));
  facts.api_version = 103;
  facts.type = type;
  facts.max_storage_range = 128 << 20;
  facts.max_storage_buffers = 32;
  facts.max_push_bytes = 128;
  facts.max_invocations = 1024;
  facts.subgroup_size = 8;
  facts.storage_alignment = 16;
  facts.timestamp_period = 1;
  facts.queues = {{.graphics = true, .compute = true, .count = 1, .timestamp_bits = 64}};
  facts.memory = {{.device_local = true,
                   .host_visible = true,
                   .host_coherent = true,
                   .host_cached = true,
                   .heap_bytes = uint64_t{2} << 30}};
  return facts;
}

DeviceFacts discrete() {
  DeviceFacts facts = device("Big GPU", DeviceType::DiscreteGpu);
  facts.queues.push_back({.graphics = false, .compute = true, .count = 2, .timestamp_bits = 64});
  facts.memory = {
      {.host_visible = true, .host_coherent = true, .heap_bytes = uint64_t{8} << 30},
      {.host_visible = true, .host_coherent = true, .host_cached = true, .heap_bytes = uint64_t{8} << 30},
      {.device_local = true, .heap_bytes = uint64_t{16} << 30},
      {.device_local = true, .host_visible = true, .host_coherent = true, .heap_bytes = 256 << 20}};
  return facts;
}

TEST(VulkanDevicePlan, SoftwareRequiresOptIn) {
  const std::vector<DeviceFacts> devices{device("llvmpipe", DeviceType::SoftwareGpu)};
  const auto refused = choose_device(devices, "", false);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("RT_VULKAN_ALLOW_SOFTWARE"), std::string::npos);
  EXPECT_TRUE(choose_device(devices, "", true).ok());
  EXPECT_TRUE(choose_device(devices, "LLVM", false).ok());
  EXPECT_TRUE(choose_device(devices, "0", false).ok());
}

TEST(VulkanDevicePlan, SelectsFastestOrNamed) {
  const std::vector<DeviceFacts> devices{device("llvmpipe", DeviceType::SoftwareGpu),
                                         device("Small", DeviceType::IntegratedGpu), discrete()};
  EXPECT_EQ(*choose_device(devices, "", true), 2u);
  EXPECT_EQ(*choose_device(devices, "small", false), 1u);
  EXPECT_EQ(*choose_device(devices, devices[2].uuid, false), 2u);
  const auto none = choose_device(devices, "Radeon", false);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("1 = Small"), std::string::npos) << none.status().message();
  EXPECT_FALSE(choose_device(devices, "7", false).ok());
  EXPECT_FALSE(choose_device({}, "", true).ok());
}

TEST(VulkanDevicePlan, UnsupportedDevicesReportReason) {
  DeviceFacts old = device("Old", DeviceType::DiscreteGpu);
  old.api_version = 100;
  EXPECT_NE(usable(old).message().find("1.1 is needed"), std::string::npos);
  DeviceFacts poor = device("Poor", DeviceType::DiscreteGpu);
  poor.max_storage_buffers = 4;  // fewer shaders run, which is said where they are asked for
  EXPECT_TRUE(usable(poor).ok());
  poor.max_push_bytes = 64;
  EXPECT_NE(usable(poor).message().find("push constants"), std::string::npos);
  DeviceFacts idle = device("Idle", DeviceType::DiscreteGpu);
  idle.queues[0].compute = false;
  EXPECT_FALSE(usable(idle).ok());
}

TEST(VulkanDevicePlan, DiscreteUsesDeviceMemoryAndStaging) {
  const auto plan = plan_device(discrete());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->queue_family, 1u);
  EXPECT_EQ(plan->tensor_memory, 2u);
  EXPECT_EQ(plan->staging_memory, 1u);
  EXPECT_FALSE(plan->mapped);
  EXPECT_FALSE(plan->texel_loads);
}

TEST(VulkanDevicePlan, ResizableBarIsWrittenDirectly) {
  DeviceFacts facts = discrete();
  facts.memory[3].heap_bytes = facts.memory[2].heap_bytes;
  const auto plan = plan_device(facts);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tensor_memory, 3u);
  EXPECT_TRUE(plan->writable);
  EXPECT_FALSE(plan->mapped);  // the host would read it over the bus
  EXPECT_EQ(plan->staging_memory, 1u);
  EXPECT_EQ(plan->reading_memory, 1u);
}

TEST(VulkanDevicePlan, UncachedMemoryIsReadThroughCachedMemory) {
  DeviceFacts facts = device("Phone", DeviceType::IntegratedGpu);
  const uint64_t bytes = facts.memory[0].heap_bytes;
  facts.memory = {{.device_local = true, .host_visible = true, .host_coherent = true, .heap_bytes = bytes},
                  {.device_local = true, .host_visible = true, .host_cached = true, .heap_bytes = bytes}};
  auto plan = plan_device(facts);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tensor_memory, 0u);
  EXPECT_EQ(plan->staging_memory, 0u);
  EXPECT_EQ(plan->reading_memory, 1u);
  EXPECT_TRUE(plan->writable);
  EXPECT_FALSE(plan->mapped);
  facts.memory.pop_back();  // nothing is cached: all is read as it is
  plan = plan_device(facts);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->mapped);
  facts.memory[0].host_cached = true;
  EXPECT_TRUE(plan_device(facts)->mapped);
}

TEST(VulkanDevicePlan, QueueWithTimestamps) {
  DeviceFacts facts = discrete();
  facts.queues[0].timestamp_bits = 36;
  EXPECT_EQ(plan_device(facts)->queue_family, 1u);
  EXPECT_EQ(plan_device(facts)->timestamp_bits, 64u);
  facts.queues[1].timestamp_bits = 0;
  EXPECT_EQ(plan_device(facts)->queue_family, 0u);
  EXPECT_EQ(plan_device(facts)->timestamp_bits, 36u);
  facts.queues[0].timestamp_bits = 0;
  EXPECT_EQ(plan_device(facts)->queue_family, 1u);
  EXPECT_EQ(plan_device(facts)->timestamp_bits, 0u);
  facts = discrete();
  facts.timestamp_period = 0;
  EXPECT_EQ(plan_device(facts)->timestamp_bits, 0u);
}

TEST(VulkanDevicePlan, TimestampsWrapAround) {
  EXPECT_EQ(timestamp_nanoseconds(10, 30, 64, 2.5), 50);
  EXPECT_EQ(timestamp_nanoseconds((uint64_t{1} << 36) - 1, 3, 36, 1), 4);
  EXPECT_EQ(timestamp_nanoseconds(~uint64_t{0}, 1, 64, 1), 2);
}

TEST(VulkanDevicePlan, SharedMemoryIsMapped) {
  const auto plan = plan_device(device("llvmpipe", DeviceType::SoftwareGpu));
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->mapped);
  EXPECT_TRUE(plan->texel_loads);
  EXPECT_EQ(plan->row_lanes, 8u);
  EXPECT_EQ(plan->alignment, 64u);
}

TEST(VulkanHazards, WriteThenReadOverlaps) {
  HazardTracker tracker;
  const HazardTracker::Access write{1, 0, 64, true}, read{1, 32, 96, false}, apart{1, 64, 128, false};
  EXPECT_FALSE(tracker.add({&write, 1}));
  EXPECT_FALSE(tracker.add({&apart, 1}));
  EXPECT_TRUE(tracker.add({&read, 1}));
  EXPECT_FALSE(tracker.add({&read, 1}));
  EXPECT_TRUE(tracker.add({&write, 1}));
}

TEST(VulkanHazards, TooManyAccessesBeginAnew) {
  HazardTracker tracker(2);
  const HazardTracker::Access first{1, 0, 64, false}, second{1, 64, 128, false}, third{1, 128, 192, false},
      write{1, 0, 64, true};
  EXPECT_FALSE(tracker.add({&first, 1}));
  EXPECT_FALSE(tracker.add({&second, 1}));
  EXPECT_TRUE(tracker.add({&third, 1}));
  EXPECT_FALSE(tracker.add({&write, 1})) << "only the third is kept";
  tracker.clear();
  EXPECT_FALSE(tracker.add({&third, 1}));
}

TEST(VulkanStrided, CollapsesBroadcasts) {
  const Shape shapes[] = {{4, 5, 6}, {6}, {1}};
  const StridedSpace space = broadcast_space({4, 5, 6}, shapes);
  EXPECT_EQ(space.extents, (std::vector<int64_t>{20, 6}));
  EXPECT_EQ(space.strides[0], (std::vector<int64_t>{6, 1}));
  EXPECT_EQ(space.strides[1], (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(space.strides[2], (std::vector<int64_t>{0, 0}));
  const Shape scalars[] = {{}, {}};
  EXPECT_EQ(broadcast_space({}, scalars).extents, std::vector<int64_t>{1});
}

TEST(VulkanPipelineCache, InvalidFileIsMiss) {
  const std::string path = ::testing::TempDir() + "/rt_vulkan_cache_test.pipelines";
  const std::vector<uint8_t> bytes{1, 2, 3, 4, 5};
  const auto read = [](const std::string& file, std::string_view key) {
    const auto found = read_pipelines(file, key);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? *found : std::vector<uint8_t>{0};
  };
  ASSERT_TRUE(write_pipelines(path, "key", bytes).ok());
  EXPECT_EQ(read(path, "key"), bytes);
  EXPECT_TRUE(read(path, "another").empty());
  EXPECT_TRUE(read(path + ".absent", "key").empty());
  FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  std::fseek(file, -1, SEEK_END);
  std::fputc(9, file);
  std::fclose(file);
  EXPECT_TRUE(read(path, "key").empty());
  std::remove(path.c_str());
}

}  // namespace
}  // namespace librt::vulkan
