// A Vulkan layer that has the software device pass for other hardware, so that nothing depends on its
// generous limits and features. RT_TEST_DEVICE lists what is pretended, separated by commas (forms.txt):
//
//   small                limits near the required minimum (Vulkan 1.3, "Required Limits"), bindings of 1 MiB,
//                        and packed dot products reported as fast, so that they are used
//   integrated           another device type
//   discrete             the same, and memory that the host maps is not the device's own
//   no_FEATURE           storage8, storage16, float16, int8, int16, int64, subgroups, dot
//   LIMIT=NUMBER         buffers, shared, push, invocations, range
//
// It changes what is reported, and refuses to map memory that it reports as the device's own; the validation
// layer above it then checks every call against that.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>

#include "tests/vulkan_limits/layer.h"

namespace {

constexpr uint32_t kDeviceMemory = 0, kHostMemory = 1;  ///< memory types of a discrete device

struct Pretended {
  bool small = false, integrated = false, discrete = false;
  bool no_storage8 = false, no_storage16 = false, no_float16 = false, no_int8 = false, no_int16 = false,
       no_int64 = false, no_subgroups = false, no_dot = false;
  uint32_t buffers = 0, shared = 0, push = 0, invocations = 0, range = 0;  ///< 0: unchanged

  Pretended() {
    const char* variable = std::getenv("RT_TEST_DEVICE");
    for (std::string_view rest = variable != nullptr ? variable : ""; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (!set(word)) {
        std::fprintf(stderr, "RT_TEST_DEVICE has '%.*s', which pretended_device.cpp does not know\n",
                     static_cast<int>(word.size()), word.data());
        std::abort();
      }
    }
  }

 private:
  bool set(std::string_view word) {
    const struct {
      std::string_view name;
      bool& flag;
    } flags[] = {{"small", small},           {"integrated", integrated},
                 {"discrete", discrete},     {"no_storage8", no_storage8},
                 {"no_int8", no_int8},       {"no_storage16", no_storage16},
                 {"no_float16", no_float16}, {"no_int16", no_int16},
                 {"no_int64", no_int64},     {"no_subgroups", no_subgroups},
                 {"no_dot", no_dot}};
    for (const auto& known : flags)
      if (known.name == word) return known.flag = true;
    const struct {
      std::string_view name;
      uint32_t& limit;
    } limits[] = {{"buffers", buffers},
                  {"shared", shared},
                  {"push", push},
                  {"invocations", invocations},
                  {"range", range}};
    const size_t equals = std::min(word.find('='), word.size());
    const std::string_view number = word.substr(std::min(equals + 1, word.size()));
    for (const auto& known : limits)
      if (known.name == word.substr(0, equals))
        return std::from_chars(number.data(), number.data() + number.size(), known.limit).ec == std::errc();
    return false;
  }
};

const Pretended& pretended() {
  static const Pretended form;
  return form;
}

void lower(uint32_t& limit, uint32_t to) {
  if (to != 0) limit = std::min(limit, to);
}

void change(VkPhysicalDeviceProperties& properties) {
  const Pretended& form = pretended();
  VkPhysicalDeviceLimits& limits = properties.limits;
  if (form.integrated) properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (form.discrete) properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  if (form.small) {
    limits.maxTexelBufferElements = 65536;
    for (uint32_t& count : limits.maxComputeWorkGroupCount) count = 256;  // the standard requires 65535
    limits.minStorageBufferOffsetAlignment = 256;
    limits.minTexelBufferOffsetAlignment = 256;
    limits.nonCoherentAtomSize = 256;
  }
  // The standard requires ranges of 2^27 bytes; small tensors must reach the limit too.
  lower(limits.maxStorageBufferRange, form.small ? 1u << 20 : form.range);
  lower(limits.maxComputeSharedMemorySize, form.small ? 16384 : form.shared);
  lower(limits.maxPushConstantsSize, form.small ? 128 : form.push);
  const uint32_t invocations = form.small ? 128 : form.invocations;
  lower(limits.maxComputeWorkGroupInvocations, invocations);
  for (uint32_t& size : limits.maxComputeWorkGroupSize) lower(size, invocations);
  lower(limits.maxPerStageDescriptorStorageBuffers, form.buffers);
}

template <class Structure, class Change>
void change_in(void* chain, VkStructureType type, Change change) {
  for (auto* next = static_cast<VkBaseOutStructure*>(chain); next != nullptr; next = next->pNext)
    if (next->sType == type) change(*reinterpret_cast<Structure*>(next));
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* result) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(device, result);
  change(*result);
}

VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* result) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2")(device,
                                                                                                result);
  change(result->properties);
  if (pretended().small)
    change_in<VkPhysicalDeviceShaderIntegerDotProductProperties>(
        result->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES,
        [](auto& dot) { dot.integerDotProduct4x8BitPackedMixedSignednessAccelerated = VK_TRUE; });
  if (pretended().no_subgroups)
    change_in<VkPhysicalDeviceSubgroupProperties>(
        result->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
        [](auto& subgroup) { subgroup.supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT; });
}

void hide(VkBool32& feature, bool hidden) {
  if (hidden) feature = VK_FALSE;
}

VKAPI_ATTR void VKAPI_CALL features(VkPhysicalDevice device, VkPhysicalDeviceFeatures* result) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceFeatures>("vkGetPhysicalDeviceFeatures")(device, result);
  hide(result->shaderInt16, pretended().no_int16);
  hide(result->shaderInt64, pretended().no_int64);
}

VKAPI_ATTR void VKAPI_CALL features2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* result) {
  const Pretended& form = pretended();
  layer::next_of_instance<PFN_vkGetPhysicalDeviceFeatures2>("vkGetPhysicalDeviceFeatures2")(device, result);
  hide(result->features.shaderInt16, form.no_int16);
  hide(result->features.shaderInt64, form.no_int64);
  const auto storage8 = [&](auto& have) { hide(have.storageBuffer8BitAccess, form.no_storage8); };
  const auto storage16 = [&](auto& have) { hide(have.storageBuffer16BitAccess, form.no_storage16); };
  const auto small_types = [&](auto& have) {
    hide(have.shaderFloat16, form.no_float16);
    hide(have.shaderInt8, form.no_int8);
  };
  const auto dot = [&](auto& have) { hide(have.shaderIntegerDotProduct, form.no_dot); };
  void* chain = result->pNext;
  change_in<VkPhysicalDevice8BitStorageFeatures>(
      chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, storage8);
  change_in<VkPhysicalDevice16BitStorageFeatures>(
      chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, storage16);
  change_in<VkPhysicalDeviceShaderFloat16Int8Features>(
      chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, small_types);
  change_in<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, dot);
  change_in<VkPhysicalDeviceVulkan11Features>(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                              storage16);
  change_in<VkPhysicalDeviceVulkan12Features>(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                              [&](auto& have) {
                                                storage8(have);
                                                small_types(have);
                                              });
  change_in<VkPhysicalDeviceVulkan13Features>(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                              dot);
}

/// The driver's only memory type becomes two.
void split_memory(VkPhysicalDeviceMemoryProperties& memory) {
  if (!pretended().discrete) return;
  if (memory.memoryTypeCount != 1) {
    std::fprintf(stderr, "pretended_device.cpp: expected a driver with one memory type, found %u\n",
                 memory.memoryTypeCount);
    std::abort();
  }
  memory.memoryTypeCount = 2;
  memory.memoryTypes[kDeviceMemory] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  memory.memoryTypes[kHostMemory] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                         VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                     1};
  memory.memoryHeapCount = 2;
  memory.memoryHeaps[1] = {memory.memoryHeaps[0].size, 0};
}

VKAPI_ATTR void VKAPI_CALL memory_properties(VkPhysicalDevice device,
                                             VkPhysicalDeviceMemoryProperties* result) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceMemoryProperties>("vkGetPhysicalDeviceMemoryProperties")(
      device, result);
  split_memory(*result);
}

VKAPI_ATTR void VKAPI_CALL memory_properties2(VkPhysicalDevice device,
                                              VkPhysicalDeviceMemoryProperties2* result) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceMemoryProperties2>("vkGetPhysicalDeviceMemoryProperties2")(
      device, result);
  split_memory(result->memoryProperties);
}

std::set<VkDeviceMemory>& device_memory() {
  static std::set<VkDeviceMemory> own;
  return own;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                                               const VkAllocationCallbacks* allocator,
                                               VkDeviceMemory* memory) {
  VkMemoryAllocateInfo real = *info;
  if (pretended().discrete) real.memoryTypeIndex = 0;
  const VkResult result =
      layer::next_of_device<PFN_vkAllocateMemory>("vkAllocateMemory")(device, &real, allocator, memory);
  if (result != VK_SUCCESS) return result;
  device_memory().erase(*memory);
  if (pretended().discrete && info->memoryTypeIndex == kDeviceMemory) device_memory().insert(*memory);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                          VkDeviceSize size, VkMemoryMapFlags flags, void** data) {
  if (device_memory().contains(memory)) return VK_ERROR_MEMORY_MAP_FAILED;
  return layer::next_of_device<PFN_vkMapMemory>("vkMapMemory")(device, memory, offset, size, flags, data);
}

VKAPI_ATTR void VKAPI_CALL requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* result) {
  layer::next_of_device<PFN_vkGetBufferMemoryRequirements>("vkGetBufferMemoryRequirements")(device, buffer,
                                                                                            result);
  if (pretended().discrete) result->memoryTypeBits = 1u << kDeviceMemory | 1u << kHostMemory;
}

}  // namespace

std::span<const layer::Entry> layer::instance_entries() {
  static const Entry entries[] = {
      {"vkGetPhysicalDeviceProperties", plain(properties)},
      {"vkGetPhysicalDeviceProperties2", plain(properties2)},
      {"vkGetPhysicalDeviceProperties2KHR", plain(properties2)},
      {"vkGetPhysicalDeviceFeatures", plain(features)},
      {"vkGetPhysicalDeviceFeatures2", plain(features2)},
      {"vkGetPhysicalDeviceFeatures2KHR", plain(features2)},
      {"vkGetPhysicalDeviceMemoryProperties", plain(memory_properties)},
      {"vkGetPhysicalDeviceMemoryProperties2", plain(memory_properties2)},
      {"vkGetPhysicalDeviceMemoryProperties2KHR", plain(memory_properties2)},
  };
  return entries;
}

std::span<const layer::Entry> layer::device_entries() {
  static const Entry entries[] = {
      {"vkAllocateMemory", plain(allocate_memory)},
      {"vkMapMemory", plain(map_memory)},
      {"vkGetBufferMemoryRequirements", plain(requirements)},
  };
  return entries;
}
