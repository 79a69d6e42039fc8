#include "tests/vulkan/lavapipe.h"

#include <cstdlib>
#include <filesystem>

#include "backends/vulkan/device/device.h"

namespace librt::test {
namespace {

std::string icd_file() {
  for (const char* folder : {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (entry.path().filename().string().starts_with("lvp_icd")) return entry.path();
  }
  return {};
}

Result<DevicePtr> open() {
  const std::string icd = icd_file();
  if (icd.empty()) return Status::make(Code::NotFound, "lavapipe (mesa-vulkan-drivers) is not installed");
  setenv("VK_ICD_FILENAMES", icd.c_str(), 0);
  setenv("RT_VULKAN_MATRICES", "1", 0);  // if the driver supports them
  setenv("LP_NUM_THREADS", "0", 0);      // tiny dispatches run in the queue's thread, without waking workers
  setenv("GALLIVM_PERF", "nopt", 0);     // compilation takes longer than the dispatches
  setenv("MESA_SHADER_CACHE_DIR", RT_SHADER_CACHE, 0);
  DeviceOptions options;
  options.device = "llvmpipe";
  options.validation = std::getenv("RT_TEST_NO_VALIDATION") == nullptr;
  options.cache_folder = RT_SHADER_CACHE;
  return vulkan::VulkanDevice::open(options);
}

}  // namespace

Device* lavapipe(std::string& reason) {
  static Result<DevicePtr> device = open();
  if (device.ok()) return device->get();
  reason = device.status().message();
  return nullptr;
}

}  // namespace librt::test
