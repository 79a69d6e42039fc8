#include "backends/vulkan/device/device_facts.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace librt::vulkan {
namespace {

std::string hex(const uint8_t* bytes, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out.push_back("0123456789abcdef"[bytes[i] >> 4]);
    out.push_back("0123456789abcdef"[bytes[i] & 15]);
  }
  return out;
}

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return DeviceType::DiscreteGpu;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return DeviceType::IntegratedGpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return DeviceType::SoftwareGpu;
    default: return DeviceType::VirtualGpu;
  }
}

Component component_of(VkComponentTypeKHR type) {
  switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR: return Component::F16;
    case VK_COMPONENT_TYPE_FLOAT32_KHR: return Component::F32;
    case VK_COMPONENT_TYPE_SINT8_KHR: return Component::S8;
    case VK_COMPONENT_TYPE_SINT32_KHR: return Component::S32;
    default: return Component::Other;
  }
}

/// For a device that lists VK_KHR_cooperative_matrix: its matrices of subgroup scope. The shaders use the
/// Vulkan memory model, because the extension requires it.
std::vector<MatrixFacts> matrices_of(const InstanceApi& api, VkPhysicalDevice device) {
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, &memory_model, VK_FALSE, VK_FALSE};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &matrices};
  api.vkGetPhysicalDeviceFeatures2(device, &features);
  if (matrices.cooperativeMatrix != VK_TRUE || memory_model.vulkanMemoryModel != VK_TRUE) return {};
  uint32_t count = 0;
  if (api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkCooperativeMatrixPropertiesKHR> rows(count);
  for (auto& row : rows) row.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  if (api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, rows.data()) != VK_SUCCESS)
    return {};
  std::vector<MatrixFacts> facts;
  for (const auto& row : rows)
    if (row.scope == VK_SCOPE_SUBGROUP_KHR && row.saturatingAccumulation == VK_FALSE &&
        row.AType == row.BType && row.CType == row.ResultType)
      facts.push_back({row.MSize, row.NSize, row.KSize, component_of(row.AType), component_of(row.CType)});
  return facts;
}

/// The device extensions that a driver lists.
class Extensions {
 public:
  Extensions(const InstanceApi& api, VkPhysicalDevice device) {
    uint32_t count = 0;
    api.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    listed_.resize(count);
    api.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, listed_.data());
  }
  bool has(std::string_view name) const {
    return std::ranges::any_of(listed_,
                               [&](const auto& extension) { return extension.extensionName == name; });
  }

 private:
  std::vector<VkExtensionProperties> listed_;
};

/// Name, version and limits, which every version of Vulkan has.
void read_basics(const InstanceApi& api, VkPhysicalDevice device, DeviceFacts& facts) {
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  api.vkGetPhysicalDeviceProperties2(device, &properties);
  const auto& p = properties.properties;
  const auto& limits = p.limits;
  facts.name = p.deviceName;
  facts.vendor_id = p.vendorID;
  facts.driver_version = p.driverVersion;
  facts.api_version = VK_API_VERSION_MAJOR(p.apiVersion) * 100 + VK_API_VERSION_MINOR(p.apiVersion);
  facts.type = type_of(p.deviceType);
  facts.max_storage_range = limits.maxStorageBufferRange;
  facts.max_texel_elements = limits.maxTexelBufferElements;
  facts.storage_alignment = limits.minStorageBufferOffsetAlignment;
  facts.texel_alignment = limits.minTexelBufferOffsetAlignment;
  facts.max_groups = std::min(limits.maxComputeWorkGroupCount[0], limits.maxComputeWorkGroupCount[1]);
  facts.max_invocations = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  facts.max_shared_bytes = limits.maxComputeSharedMemorySize;
  facts.max_push_bytes = limits.maxPushConstantsSize;
  facts.max_storage_buffers = limits.maxPerStageDescriptorStorageBuffers;
  facts.timestamp_period = static_cast<double>(limits.timestampPeriod);
  facts.driver = text(VK_API_VERSION_MAJOR(p.driverVersion), ".", VK_API_VERSION_MINOR(p.driverVersion), ".",
                      VK_API_VERSION_PATCH(p.driverVersion));
}

bool has_integer_dot(const DeviceFacts& facts, const Extensions& extensions) {
  return facts.api_version >= 103 || extensions.has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
}

/// Subgroups, UUID, driver, and whether packed integer dot products are accelerated (features.integer_dot).
void read_properties(const InstanceApi& api, VkPhysicalDevice device, const Extensions& extensions,
                     DeviceFacts& facts) {
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, &subgroup};
  VkPhysicalDeviceMaintenance3Properties maintenance{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &id};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &maintenance};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
                                          properties.pNext};
  const bool has_driver = facts.api_version >= 102 || extensions.has("VK_KHR_driver_properties");
  if (has_driver) properties.pNext = &driver;
  VkPhysicalDeviceShaderIntegerDotProductProperties dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES, properties.pNext};
  if (has_integer_dot(facts, extensions)) properties.pNext = &dot;
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT, properties.pNext, 0};
  facts.memory_fd = extensions.has(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  facts.memory_host = extensions.has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (facts.memory_host) properties.pNext = &host;
  api.vkGetPhysicalDeviceProperties2(device, &properties);

  facts.host_pointer_alignment = host.minImportedHostPointerAlignment;
  facts.subgroup_size = subgroup.subgroupSize;
  constexpr VkSubgroupFeatureFlags kShuffle =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  facts.subgroup_shuffle = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                           (subgroup.supportedOperations & kShuffle) == kShuffle;
  facts.uuid = hex(id.deviceUUID, VK_UUID_SIZE);
  facts.max_allocation = maintenance.maxMemoryAllocationSize;
  if (has_driver) facts.driver = text(driver.driverName, " ", driver.driverInfo);
  facts.features.integer_dot = dot.integerDotProduct4x8BitPackedMixedSignednessAccelerated == VK_TRUE;
}

/// After read_properties().
void read_features(const InstanceApi& api, VkPhysicalDevice device, const Extensions& extensions,
                   DeviceFacts& facts) {
  VkPhysicalDevice16BitStorageFeatures storage16{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage8{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                               &storage16};
  VkPhysicalDeviceShaderFloat16Int8Features small{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &storage8};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &storage16};
  // Both structures are core since 1.2; before, they must not be passed to a driver without the extension.
  if (facts.api_version >= 102 ||
      (extensions.has("VK_KHR_8bit_storage") && extensions.has("VK_KHR_shader_float16_int8")))
    features.pNext = &small;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, features.pNext};
  if (has_integer_dot(facts, extensions)) features.pNext = &dot;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, features.pNext, VK_FALSE};
  if (facts.api_version >= 102) features.pNext = &timeline;
  api.vkGetPhysicalDeviceFeatures2(device, &features);

  FeatureFacts& f = facts.features;
  f.storage_16bit = storage16.storageBuffer16BitAccess == VK_TRUE;
  f.storage_8bit = storage8.storageBuffer8BitAccess == VK_TRUE;
  f.float16 = small.shaderFloat16 == VK_TRUE;
  f.int8 = small.shaderInt8 == VK_TRUE;
  f.timeline = timeline.timelineSemaphore == VK_TRUE;
  f.integer_dot = f.integer_dot && dot.shaderIntegerDotProduct == VK_TRUE;
  f.int16 = features.features.shaderInt16 == VK_TRUE;
  f.int64 = features.features.shaderInt64 == VK_TRUE;
}

void read_queues(const InstanceApi& api, VkPhysicalDevice device, DeviceFacts& facts) {
  uint32_t count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> queues(count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, queues.data());
  for (const auto& queue : queues)
    facts.queues.push_back({.graphics = (queue.queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0,
                            .compute = (queue.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0,
                            .count = queue.queueCount,
                            .timestamp_bits = queue.timestampValidBits});
}

void read_memory(const InstanceApi& api, VkPhysicalDevice device, DeviceFacts& facts) {
  VkPhysicalDeviceMemoryProperties memory;
  api.vkGetPhysicalDeviceMemoryProperties(device, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const auto flags = memory.memoryTypes[i].propertyFlags;
    facts.memory.push_back({.device_local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0,
                            .host_visible = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0,
                            .host_coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0,
                            .host_cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0,
                            .heap_bytes = memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size});
  }
}

}  // namespace

DeviceFacts read_device_facts(const InstanceApi& api, VkPhysicalDevice device, bool matrices) {
  DeviceFacts facts;
  read_basics(api, device, facts);
  if (facts.api_version < 101) return facts;  // refused by usable()
  const Extensions extensions(api, device);
  read_properties(api, device, extensions, facts);
  read_features(api, device, extensions, facts);
  if (matrices && facts.api_version >= 102 && extensions.has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) &&
      api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR != nullptr)
    facts.matrices = matrices_of(api, device);
  read_queues(api, device, facts);
  read_memory(api, device, facts);
  return facts;
}

}  // namespace librt::vulkan
