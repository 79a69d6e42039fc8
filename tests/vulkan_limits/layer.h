// The common part of the Vulkan layers: a layer is in the chain between loader and driver, and forwards
// everything that it does not change.
//
// Knows: the loader's layer interface, version 2. A layer's only source file includes this and defines the
// two lists of functions that it intercepts. Tests only, never installed.
#pragma once

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace layer {

struct Entry {
  const char* name;
  PFN_vkVoidFunction function;
};
/// Defined by the layer.
std::span<const Entry> instance_entries();
std::span<const Entry> device_entries();

inline PFN_vkGetInstanceProcAddr next_instance_function = nullptr;
inline PFN_vkGetDeviceProcAddr next_device_function = nullptr;
inline VkInstance made_instance = VK_NULL_HANDLE;
inline VkDevice made_device = VK_NULL_HANDLE;

inline PFN_vkVoidFunction find(std::span<const Entry> entries, const char* name) {
  for (const Entry& entry : entries)
    if (std::strcmp(name, entry.name) == 0) return entry.function;
  return nullptr;
}

/// The next layer's functions for those that this one intercepts, looked up while the instance is created:
/// later, a loader may answer with the first layer's.
inline std::vector<Entry> next_instance_functions;

template <class Function>
Function next_of_instance(const char* name) {
  const PFN_vkVoidFunction next = find(next_instance_functions, name);
  return reinterpret_cast<Function>(next != nullptr ? next : next_instance_function(made_instance, name));
}
template <class Function>
Function next_of_device(const char* name) {
  return reinterpret_cast<Function>(next_device_function(made_device, name));
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

inline VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create,
                                                      const VkAllocationCallbacks* allocator,
                                                      VkInstance* instance) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(create, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  next_instance_function = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto next =
      reinterpret_cast<PFN_vkCreateInstance>(next_instance_function(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = next(create, allocator, instance);
  if (result != VK_SUCCESS) return result;
  made_instance = *instance;
  std::vector<Entry> functions{{"vkCreateDevice", next_instance_function(*instance, "vkCreateDevice")}};
  for (const Entry& entry : instance_entries())
    functions.push_back({entry.name, next_instance_function(*instance, entry.name)});
  next_instance_functions = std::move(functions);
  return result;
}

inline VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo* create,
                                                    const VkAllocationCallbacks* allocator,
                                                    VkDevice* device) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(create, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  next_device_function = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result =
      next_of_instance<PFN_vkCreateDevice>("vkCreateDevice")(physical, create, allocator, device);
  if (result == VK_SUCCESS) made_device = *device;
  return result;
}

template <class Function>
PFN_vkVoidFunction plain(Function* function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return plain(device_function);
  if (const auto own = find(device_entries(), name)) return own;
  return next_device_function(device, name);
}

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const Entry chain[] = {
      {"vkGetInstanceProcAddr", plain(instance_function)},
      {"vkGetDeviceProcAddr", plain(device_function)},
      {"vkCreateInstance", plain(create_instance)},
      {"vkCreateDevice", plain(create_device)},
  };
  if (const auto own = find(chain, name)) return own;
  if (const auto own = find(instance_entries(), name)) return own;
  return next_instance_function == nullptr ? nullptr : next_instance_function(instance, name);
}

}  // namespace layer

// NOLINTNEXTLINE(misc-definitions-in-headers): each layer is one source file, which includes this
extern "C" __attribute__((visibility("default"))) VkResult vkNegotiateLoaderLayerInterfaceVersion(
    VkNegotiateLayerInterface* interface) {
  interface->loaderLayerInterfaceVersion = std::min(interface->loaderLayerInterfaceVersion, 2u);
  interface->pfnGetInstanceProcAddr = layer::instance_function;
  interface->pfnGetDeviceProcAddr = layer::device_function;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
