// A Vulkan layer that simulates failing devices. RT_TEST_FAULT=N:lost: the Nth call of those below, which can
// report VK_ERROR_DEVICE_LOST, does, and so do all later ones of that VkDevice; N:once: only that one;
// N:submit: as lost, but only calls of vkQueueSubmit are counted; N:memory: the Nth returns
// VK_ERROR_OUT_OF_DEVICE_MEMORY; N:hang: the Nth call of vkWaitForFences, and all later ones of that
// VkDevice, end with VK_TIMEOUT.
#include <algorithm>
#include <cstring>

#include "tests/support/device_fault.h"
#include "tests/vulkan_limits/layer.h"

namespace {

VkDevice lost_device = VK_NULL_HANDLE;
bool hangs = false;  ///< what was submitted does not end, else it was lost

VkResult next_fault(const char* name) {
  const bool waits = std::strcmp(name, "vkWaitForFences") == 0;
  if (lost_device == layer::made_device && lost_device != VK_NULL_HANDLE) {
    if (hangs) return waits ? VK_TIMEOUT : VK_SUCCESS;
    return VK_ERROR_DEVICE_LOST;
  }
  const std::string kind = librt::test::device_fault([&](const std::string& given) {
    return given == "submit" ? std::strcmp(name, "vkQueueSubmit") == 0 : given != "hang" || waits;
  });
  if (kind.empty()) return VK_SUCCESS;
  if (kind == "memory") return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (kind != "once") lost_device = layer::made_device;
  hangs = kind == "hang";
  return hangs ? VK_TIMEOUT : VK_ERROR_DEVICE_LOST;
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* allocator) {
  if (device == lost_device) lost_device = VK_NULL_HANDLE;
  layer::next_of_device<PFN_vkDestroyDevice>("vkDestroyDevice")(device, allocator);
}

template <size_t kLength>
struct Name {
  // NOLINTNEXTLINE(google-explicit-constructor): template arguments are written as literals
  consteval Name(const char (&given)[kLength]) { std::copy_n(given, kLength, text); }
  char text[kLength];
};

template <Name kName, class Function>
struct Call;
template <Name kName, class... Arguments>
struct Call<kName, VkResult(VKAPI_PTR*)(Arguments...)> {
  using Function = VkResult(VKAPI_PTR*)(Arguments...);
  static VKAPI_ATTR VkResult VKAPI_CALL call(Arguments... arguments) {
    const VkResult fault = next_fault(kName.text);
    if (fault == VK_SUCCESS) return layer::next_of_device<Function>(kName.text)(arguments...);
    // Nothing runs on a lost device; here, what runs is completed.
    layer::next_of_device<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(layer::made_device);
    return fault;
  }
};

}  // namespace

std::span<const layer::Entry> layer::instance_entries() {
  return {};
}

std::span<const layer::Entry> layer::device_entries() {
#define RT_CALL(name) \
  { #name, plain(Call <Name(#name), PFN_##name>::call) }
  static const Entry entries[] = {RT_CALL(vkAllocateMemory),   RT_CALL(vkBeginCommandBuffer),
                                  RT_CALL(vkBindBufferMemory), RT_CALL(vkCreateComputePipelines),
                                  RT_CALL(vkEndCommandBuffer), RT_CALL(vkMapMemory),
                                  RT_CALL(vkQueueSubmit),      RT_CALL(vkWaitForFences),
                                  RT_CALL(vkDeviceWaitIdle),   {"vkDestroyDevice", plain(destroy_device)}};
#undef RT_CALL
  return entries;
}
