#include "backends/vulkan/device/loader.h"

#include <dlfcn.h>

namespace librt::vulkan {

Result<Loader> Loader::open() {
  // Drivers leave threads and thread-local destructors in the process, so the library is never unloaded.
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    return Status::make(Code::NotFound, "the Vulkan loader libvulkan.so.1 is not installed (", dlerror(),
                        ")");
  Loader loader;
  loader.get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (loader.get == nullptr)
    return Status::make(Code::NotFound, "libvulkan.so.1 has no vkGetInstanceProcAddr");
#define RT_VK_LOAD(name) loader.api.name = loader.function<PFN_##name>(VK_NULL_HANDLE, #name);
  RT_VK_GLOBAL_FUNCTIONS(RT_VK_LOAD)
#undef RT_VK_LOAD
  if (loader.api.vkEnumerateInstanceVersion == nullptr || loader.api.vkCreateInstance == nullptr)
    return Status::make(Code::NotFound, "libvulkan.so.1 is a Vulkan 1.0 loader, 1.1 is needed");
  return loader;
}

InstanceApi Loader::instance_api(VkInstance instance) const {
  InstanceApi functions;
#define RT_VK_LOAD(name) functions.name = function<PFN_##name>(instance, #name);
  RT_VK_INSTANCE_FUNCTIONS(RT_VK_LOAD)
  RT_VK_LOAD(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
#undef RT_VK_LOAD
  return functions;
}

}  // namespace librt::vulkan
