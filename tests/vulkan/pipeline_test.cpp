// Pipelines of a driver that is made up: what is created for a shader, and when its cache is written.
#include "backends/vulkan/dispatch/pipeline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "backends/vulkan/dispatch/pipeline_cache_file.h"

namespace librt::vulkan {
namespace {

std::atomic<uint32_t> compiled = 0;
std::atomic<std::thread::id> writer;  ///< the thread that read the driver's cache last
uint32_t set_bindings = 0;            ///< of the last layout

template <class Handle>
Handle any_handle() {
  return reinterpret_cast<Handle>(uintptr_t{1});
}

/// A driver whose cache has 64 bytes, the first of which counts the pipelines.
DeviceApi driver() {
  DeviceApi api{};
  api.vkCreatePipelineCache = [](VkDevice, const VkPipelineCacheCreateInfo*, const VkAllocationCallbacks*,
                                 VkPipelineCache* cache) {
    *cache = any_handle<VkPipelineCache>();
    return VK_SUCCESS;
  };
  api.vkGetPipelineCacheData = [](VkDevice, VkPipelineCache, size_t* size, void* data) {
    *size = 64;
    writer = std::this_thread::get_id();
    if (data != nullptr) std::memset(data, static_cast<int>(compiled.load()), *size);
    return VK_SUCCESS;
  };
  api.vkCreateDescriptorSetLayout = [](VkDevice, const VkDescriptorSetLayoutCreateInfo* create,
                                       const VkAllocationCallbacks*, VkDescriptorSetLayout* layout) {
    set_bindings = create->bindingCount;
    *layout = any_handle<VkDescriptorSetLayout>();
    return VK_SUCCESS;
  };
  api.vkCreatePipelineLayout = [](VkDevice, const VkPipelineLayoutCreateInfo*, const VkAllocationCallbacks*,
                                  VkPipelineLayout* layout) {
    *layout = any_handle<VkPipelineLayout>();
    return VK_SUCCESS;
  };
  api.vkCreateShaderModule = [](VkDevice, const VkShaderModuleCreateInfo*, const VkAllocationCallbacks*,
                                VkShaderModule* module) {
    *module = any_handle<VkShaderModule>();
    return VK_SUCCESS;
  };
  api.vkCreateComputePipelines = [](VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*,
                                    const VkAllocationCallbacks*, VkPipeline* pipeline) {
    ++compiled;
    *pipeline = any_handle<VkPipeline>();
    return VK_SUCCESS;
  };
  api.vkDestroyPipeline = [](VkDevice, VkPipeline, const VkAllocationCallbacks*) {};
  api.vkDestroyPipelineCache = [](VkDevice, VkPipelineCache, const VkAllocationCallbacks*) {};
  api.vkDestroyPipelineLayout = [](VkDevice, VkPipelineLayout, const VkAllocationCallbacks*) {};
  api.vkDestroyDescriptorSetLayout = [](VkDevice, VkDescriptorSetLayout, const VkAllocationCallbacks*) {};
  api.vkDestroyShaderModule = [](VkDevice, VkShaderModule, const VkAllocationCallbacks*) {};
  return api;
}

DeviceFacts facts_with(uint32_t storage_buffers) {
  DeviceFacts facts;
  facts.max_storage_buffers = storage_buffers;
  return facts;
}

TEST(VulkanPipelines, LayoutHasTheBindingsOfTheShader) {
  const DeviceApi api = driver();
  const DeviceFacts facts = facts_with(4);
  PipelineStore store(api, VK_NULL_HANDLE, facts);
  ASSERT_TRUE(store.open("", "key").ok());
  ASSERT_TRUE(store.get(Shader::unary, {64, 3}).ok());
  EXPECT_EQ(set_bindings, 2u);
  ASSERT_TRUE(store.get(Shader::binary, {64, 0, 1, 0}).ok());
  EXPECT_EQ(set_bindings, 3u);
  const auto refused = store.get(Shader::optimizer_step_3, {64, 0, 0, 0});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::Unsupported);
  EXPECT_NE(refused.status().message().find("10 storage buffers (it has 4)"), std::string::npos);
}

// A process that is ended keeps what it has compiled.
TEST(VulkanPipelines, CacheIsWrittenBeforeTheEnd) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("pipeline_test_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "cache";
  const auto pipelines_stored = [&] {
    const auto bytes = read_pipelines(path, "key");
    return bytes.ok() && !bytes->empty() ? static_cast<uint32_t>(bytes->front()) : 0u;
  };
  compiled = 0;
  const DeviceApi api = driver();
  const DeviceFacts facts = facts_with(kStorageBindings);
  {
    PipelineStore store(api, VK_NULL_HANDLE, facts);
    ASSERT_TRUE(store.open(path, "key").ok());
    store.save_later();
    ASSERT_TRUE(store.get(Shader::unary, {64, 3}).ok());
    store.save_later();
    store.save();  // waits only: everything is written
    EXPECT_EQ(pipelines_stored(), 1u);
    EXPECT_NE(writer.load(), std::this_thread::get_id());
    ASSERT_TRUE(store.get(Shader::unary, {64, 4}).ok());
    EXPECT_EQ(pipelines_stored(), 1u);
  }
  EXPECT_EQ(pipelines_stored(), 2u);  // also what no plan has recorded
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace librt::vulkan
