// The VkInstance: layers, validation messages, the list of devices.
//
// Knows: instance-level Vulkan. Must not know: memory, kernels. Without loader, driver or device it returns
// an error message, never crashes.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/vulkan/device/device_plan.h"
#include "backends/vulkan/device/loader.h"

namespace librt::vulkan {

class Instance {
 public:
  /// Opens the loader and creates an instance; with `validation` under the Khronos layer including
  /// synchronization validation, which must then be installed.
  static Result<std::shared_ptr<Instance>> open(bool validation);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const noexcept { return api_; }
  VkInstance handle() const noexcept { return instance_; }
  bool validation() const noexcept { return validation_; }
  /// Facts of every physical device, in the driver's order.
  Status list(std::vector<DeviceFacts>& facts, std::vector<VkPhysicalDevice>& handles) const;
  /// Ok, or the validation errors reported since the last call.
  Status validation_errors();

 private:
  Instance() = default;
  Status create(const Loader& loader);
  Status create_messenger(const Loader& loader);
  /// Validation errors are sent to on_message.
  VkDebugUtilsMessengerCreateInfoEXT messenger_info();
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* self);
  InstanceApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger_ = nullptr;
  bool validation_ = false;
  bool matrices_ = true;  ///< cooperative matrices may be used
  std::atomic<uint32_t> error_count_{0};
  std::mutex mutex_;
  std::string errors_;
};

}  // namespace librt::vulkan
