// A Vulkan layer that has the software device pass for other hardware, so that nothing depends on its
// generous limits and features. RT_TEST_DEVICE lists what is pretended, separated by commas (forms.txt):
//
//   small                limits near the required minimum (Vulkan 1.3, "Required Limits"), bindings of 1 MiB,
//                        and packed dot products reported as fast, so that they are used
//   integrated           another device type
//   discrete             the same, and memory that the host maps is not the device's own
//   bar                  with discrete: the host maps the device's own memory, too
//   uncached             the host maps all memory, but only what is not coherent is cached
//   no_FEATURE           storage8, storage16, float16, int8, int16, int64, subgroups, dot
//   LIMIT=NUMBER         buffers, shared, push, invocations, range; timestamps: their bits, after which they
//   begin
//                        anew between any two that are read
//
// It changes what is reported, and refuses to map memory that it reports as the device's own; the validation
// layer above it then checks every call against that.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "tests/vulkan_limits/layer.h"

namespace {

struct Pretended {
  bool small = false, integrated = false, discrete = false, bar = false, uncached = false;
  bool no_storage8 = false, no_storage16 = false, no_float16 = false, no_int8 = false, no_int16 = false,
       no_int64 = false, no_subgroups = false, no_dot = false;
  uint32_t buffers = 0, shared = 0, push = 0, invocations = 0, range = 0, timestamps = 0;  ///< 0: unchanged

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
    } flags[] = {{"small", small},
                 {"integrated", integrated},
                 {"discrete", discrete},
                 {"no_storage8", no_storage8},
                 {"bar", bar},
                 {"uncached", uncached},
                 {"no_int8", no_int8},
                 {"no_storage16", no_storage16},
                 {"no_float16", no_float16},
                 {"no_int16", no_int16},
                 {"no_int64", no_int64},
                 {"no_subgroups", no_subgroups},
                 {"no_dot", no_dot}};
    for (const auto& known : flags)
      if (known.name == word) return known.flag = true;
    const struct {
      std::string_view name;
      uint32_t& limit;
    } limits[] = {{"buffers", buffers},         {"shared", shared}, {"push", push},
                  {"invocations", invocations}, {"range", range},   {"timestamps", timestamps}};
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

constexpr VkMemoryPropertyFlags kOwn = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                kCoherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

/// The memory types that the driver's only one becomes; none: unchanged.
const std::vector<VkMemoryPropertyFlags>& memory_types() {
  static const std::vector<VkMemoryPropertyFlags> types = [] {
    std::vector<VkMemoryPropertyFlags> list;
    if (pretended().discrete) list = {kOwn, kHost | kCoherent | kCached};
    if (pretended().bar) list.push_back(kOwn | kHost | kCoherent);
    if (pretended().uncached) list = {kOwn | kHost | kCoherent, kHost | kCached};
    return list;
  }();
  return types;
}

void split_memory(VkPhysicalDeviceMemoryProperties& memory) {
  if (memory_types().empty()) return;
  if (memory.memoryTypeCount != 1) {
    std::fprintf(stderr, "pretended_device.cpp: expected a driver with one memory type, found %u\n",
                 memory.memoryTypeCount);
    std::abort();
  }
  memory.memoryTypeCount = 0;
  for (const VkMemoryPropertyFlags flags : memory_types())
    memory.memoryTypes[memory.memoryTypeCount++] = {flags, (flags & kOwn) != 0 ? 0u : 1u};
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

/// Memory of a pretended type. The host sees what is not coherent in a copy, which is made equal on request.
struct Memory {
  VkMemoryPropertyFlags type = 0;
  std::byte* mapped = nullptr;
  std::vector<std::byte> seen;
};
std::map<VkDeviceMemory, Memory>& memories() {
  static std::map<VkDeviceMemory, Memory> all;
  return all;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                                               const VkAllocationCallbacks* allocator,
                                               VkDeviceMemory* memory) {
  VkMemoryAllocateInfo real = *info;
  if (!memory_types().empty()) real.memoryTypeIndex = 0;
  const VkResult result =
      layer::next_of_device<PFN_vkAllocateMemory>("vkAllocateMemory")(device, &real, allocator, memory);
  if (result != VK_SUCCESS || memory_types().empty()) return result;
  Memory& made = memories()[*memory] = {};
  made.type = memory_types()[info->memoryTypeIndex];
  if ((made.type & (kHost | kCoherent)) == kHost) made.seen.resize(info->allocationSize);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                          VkDeviceSize size, VkMemoryMapFlags flags, void** data) {
  const auto found = memories().find(memory);
  if (found != memories().end() && (found->second.type & kHost) == 0) return VK_ERROR_MEMORY_MAP_FAILED;
  const VkResult result =
      layer::next_of_device<PFN_vkMapMemory>("vkMapMemory")(device, memory, offset, size, flags, data);
  if (result != VK_SUCCESS || found == memories().end() || found->second.seen.empty()) return result;
  found->second.mapped = static_cast<std::byte*>(*data) - offset;
  *data = found->second.seen.data() + offset;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL invalidate(VkDevice device, uint32_t count,
                                          const VkMappedMemoryRange* ranges) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto found = memories().find(ranges[i].memory);
    if (found == memories().end() || found->second.mapped == nullptr) continue;
    Memory& memory = found->second;
    const VkDeviceSize offset = ranges[i].offset;
    std::copy_n(memory.mapped + offset, std::min(ranges[i].size, memory.seen.size() - offset),
                memory.seen.data() + offset);
  }
  return layer::next_of_device<PFN_vkInvalidateMappedMemoryRanges>("vkInvalidateMappedMemoryRanges")(
      device, count, ranges);
}

VKAPI_ATTR void VKAPI_CALL requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* result) {
  layer::next_of_device<PFN_vkGetBufferMemoryRequirements>("vkGetBufferMemoryRequirements")(device, buffer,
                                                                                            result);
  if (!memory_types().empty()) result->memoryTypeBits = (1u << memory_types().size()) - 1;
}

VKAPI_ATTR void VKAPI_CALL queue_families(VkPhysicalDevice device, uint32_t* count,
                                          VkQueueFamilyProperties* families) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
      "vkGetPhysicalDeviceQueueFamilyProperties")(device, count, families);
  for (uint32_t i = 0; families != nullptr && pretended().timestamps > 0 && i < *count; ++i)
    families[i].timestampValidBits = pretended().timestamps;
}

/// The first timestamp is just below the largest that there is.
VKAPI_ATTR VkResult VKAPI_CALL query_results(VkDevice device, VkQueryPool pool, uint32_t first,
                                             uint32_t count, size_t bytes, void* data, VkDeviceSize stride,
                                             VkQueryResultFlags flags) {
  const VkResult result = layer::next_of_device<PFN_vkGetQueryPoolResults>("vkGetQueryPoolResults")(
      device, pool, first, count, bytes, data, stride, flags);
  if (pretended().timestamps == 0 || stride != sizeof(uint64_t)) return result;
  const uint64_t end = uint64_t{1} << pretended().timestamps;
  auto* values = static_cast<uint64_t*>(data);
  const uint64_t begin = *values;
  for (uint32_t i = 0; i < count; ++i) values[i] = (values[i] - begin + end - 1) & (end - 1);
  return result;
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
      {"vkGetPhysicalDeviceQueueFamilyProperties", plain(queue_families)},
      {"vkGetPhysicalDeviceMemoryProperties", plain(memory_properties)},
      {"vkGetPhysicalDeviceMemoryProperties2", plain(memory_properties2)},
      {"vkGetPhysicalDeviceMemoryProperties2KHR", plain(memory_properties2)},
  };
  return entries;
}

std::span<const layer::Entry> layer::device_entries() {
  static const Entry entries[] = {
      {"vkAllocateMemory", plain(allocate_memory)},           {"vkMapMemory", plain(map_memory)},
      {"vkInvalidateMappedMemoryRanges", plain(invalidate)},  {"vkGetQueryPoolResults", plain(query_results)},
      {"vkGetBufferMemoryRequirements", plain(requirements)},
  };
  return entries;
}
