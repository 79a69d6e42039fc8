// A Vulkan layer that simulates a device with little more than the required minimum (Vulkan 1.3, table
// "Required Limits"), so that nothing depends on the generous limits of the software device. It changes only
// the reported limits, and reports packed dot products as fast, so that they are used; the validation layer
// above it then checks every call.
#include "tests/vulkan_limits/layer.h"

namespace {

void shrink(VkPhysicalDeviceLimits& limits) {
  limits.maxStorageBufferRange = 1u << 20;  // the standard requires 2^27; small tensors must reach it too
  limits.maxTexelBufferElements = 65536;
  limits.maxComputeSharedMemorySize = 16384;
  limits.maxComputeWorkGroupInvocations = 128;
  for (uint32_t& size : limits.maxComputeWorkGroupSize) size = std::min(size, 128u);
  for (uint32_t& count : limits.maxComputeWorkGroupCount) count = 256;  // the standard requires 65535
  limits.minStorageBufferOffsetAlignment = 256;
  limits.minTexelBufferOffsetAlignment = 256;
  limits.nonCoherentAtomSize = 256;
  limits.maxPushConstantsSize = 128;
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* result) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(device, result);
  shrink(result->limits);
}

VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* result) {
  layer::next_of_instance<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2")(device,
                                                                                                result);
  shrink(result->properties.limits);
  for (auto* next = static_cast<VkBaseOutStructure*>(result->pNext); next != nullptr; next = next->pNext)
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES)
      reinterpret_cast<VkPhysicalDeviceShaderIntegerDotProductProperties*>(next)
          ->integerDotProduct4x8BitPackedMixedSignednessAccelerated = VK_TRUE;
}

}  // namespace

std::span<const layer::Entry> layer::instance_entries() {
  static const Entry entries[] = {
      {"vkGetPhysicalDeviceProperties", plain(properties)},
      {"vkGetPhysicalDeviceProperties2", plain(properties2)},
      {"vkGetPhysicalDeviceProperties2KHR", plain(properties2)},
  };
  return entries;
}

std::span<const layer::Entry> layer::device_entries() {
  return {};
}
