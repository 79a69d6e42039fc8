// A Vulkan layer that pretends a device with little more than what the standard demands (Vulkan 1.3, table
// "Required Limits"), so that nothing depends on the generous limits of the software device. It only lies
// about limits; the validation layer above it then checks every call against them.
//
// Knows: the loader's layer interface, version 2. Tests only, never installed.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstring>

namespace {

PFN_vkGetInstanceProcAddr next_instance_function = nullptr;
PFN_vkGetDeviceProcAddr next_device_function = nullptr;
PFN_vkGetPhysicalDeviceProperties next_properties = nullptr;
PFN_vkGetPhysicalDeviceProperties2 next_properties2 = nullptr;
PFN_vkCreateDevice next_create_device = nullptr;

void shrink(VkPhysicalDeviceLimits& limits) {
  limits.maxStorageBufferRange = 1u << 20;  // the standard demands 2^27; small tensors shall meet it too
  limits.maxTexelBufferElements = 65536;
  limits.maxComputeSharedMemorySize = 16384;
  limits.maxComputeWorkGroupInvocations = 128;
  for (uint32_t& size : limits.maxComputeWorkGroupSize) size = std::min(size, 128u);
  for (uint32_t& count : limits.maxComputeWorkGroupCount) count = 256;  // the standard demands 65535
  limits.minStorageBufferOffsetAlignment = 256;
  limits.minTexelBufferOffsetAlignment = 256;
  limits.nonCoherentAtomSize = 256;
  limits.maxPushConstantsSize = 128;
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* result) {
  next_properties(device, result);
  shrink(result->limits);
}

VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* result) {
  next_properties2(device, result);
  shrink(result->properties.limits);
}

template <class Link, class Create>
Link* link_of(const Create* create, VkStructureType type) {
  for (auto* next = static_cast<const VkBaseInStructure*>(create->pNext); next != nullptr;
       next = next->pNext) {
    auto* link = reinterpret_cast<Link*>(const_cast<VkBaseInStructure*>(next));
    if (next->sType == type && link->function == VK_LAYER_LINK_INFO) return link;
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create,
                                               const VkAllocationCallbacks* allocator, VkInstance* instance) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(create, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  next_instance_function = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto next =
      reinterpret_cast<PFN_vkCreateInstance>(next_instance_function(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = next(create, allocator, instance);
  if (result != VK_SUCCESS) return result;
  const auto find = [&](const char* name) { return next_instance_function(*instance, name); };
  next_properties =
      reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(find("vkGetPhysicalDeviceProperties"));
  next_properties2 =
      reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(find("vkGetPhysicalDeviceProperties2"));
  next_create_device = reinterpret_cast<PFN_vkCreateDevice>(find("vkCreateDevice"));
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* create,
                                             const VkAllocationCallbacks* allocator, VkDevice* device) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(create, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  next_device_function = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  return next_create_device(physical, create, allocator, device);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  return next_device_function(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  struct Entry {
    const char* name;
    PFN_vkVoidFunction function;
  };
  const Entry entries[] = {
      {"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(instance_function)},
      {"vkGetDeviceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(device_function)},
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(create_instance)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(create_device)},
      {"vkGetPhysicalDeviceProperties", reinterpret_cast<PFN_vkVoidFunction>(properties)},
      {"vkGetPhysicalDeviceProperties2", reinterpret_cast<PFN_vkVoidFunction>(properties2)},
      {"vkGetPhysicalDeviceProperties2KHR", reinterpret_cast<PFN_vkVoidFunction>(properties2)},
  };
  for (const Entry& entry : entries)
    if (std::strcmp(name, entry.name) == 0) return entry.function;
  return next_instance_function == nullptr ? nullptr : next_instance_function(instance, name);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VkResult vkNegotiateLoaderLayerInterfaceVersion(
    VkNegotiateLayerInterface* interface) {
  interface->loaderLayerInterfaceVersion = std::min(interface->loaderLayerInterfaceVersion, 2u);
  interface->pfnGetInstanceProcAddr = instance_function;
  interface->pfnGetDeviceProcAddr = device_function;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
