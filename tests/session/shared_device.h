// What an application has on the devices of tests: CUDA's functions and Vulkan's, found in this process.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <string>

#if __has_include(<vulkan/vulkan_core.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>
#define RT_TEST_VULKAN 1
#endif

#include "rt/rt.hpp"

namespace librt::test {

/// The CUDA runtime that the session uses: the emulator's, which its module exports, or libcudart.
class CudaRuntime {
 public:
  CudaRuntime() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* self) {
          if (std::strstr(info->dlpi_name, "librt_cuda_emu") != nullptr)
            static_cast<CudaRuntime*>(self)->library_ = dlopen(info->dlpi_name, RTLD_NOW);
          return 0;
        },
        this);
    for (const char* name : {"libcudart.so", "libcudart.so.13", "libcudart.so.12"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW);
  }
  explicit operator bool() const { return library_ != nullptr; }
  /// Calls a function that returns cudaError_t.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    return function != nullptr ? function(arguments...) : -1;
  }

 private:
  void* library_ = nullptr;
};

#if RT_TEST_VULKAN
/// The functions of the VkDevice of a session.
class VulkanFunctions {
 public:
  explicit VulkanFunctions(const rt_native_handles& native)
      : instance_(static_cast<VkInstance>(native.vk_instance)),
        device_(static_cast<VkDevice>(native.vk_device)) {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW);
    get_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  }
  VkDevice device() const { return device_; }
  template <class Function>
  Function get(const char* name) const {
    const auto of_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(get_(instance_, "vkGetDeviceProcAddr"));
    return reinterpret_cast<Function>(of_device(device_, name));
  }

 private:
  VkInstance instance_;
  VkDevice device_;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
};
#define RT_VK(functions, name) (functions).get<PFN_##name>(#name)
#endif

}  // namespace librt::test
