// libvulkan.so.1, opened at run time.
//
// Knows: where entry points come from. Must not know: instances, devices.
#pragma once

#include "backends/vulkan/device/api.h"
#include "runtime/core/status.h"

namespace librt::vulkan {

struct Loader {
  PFN_vkGetInstanceProcAddr get = nullptr;
  GlobalApi api;

  /// Opens the library, which stays loaded until the process ends; NotFound if it is missing or older
  /// than 1.1.
  static Result<Loader> open();
  InstanceApi instance_api(VkInstance instance) const;
  /// Null if the function does not exist. `Function` is its PFN_ type.
  template <class Function>
  Function function(VkInstance instance, const char* name) const {
    return reinterpret_cast<Function>(get(instance, name));
  }
};

}  // namespace librt::vulkan
