// The module's one exported symbol.
#include "runtime/backend/module.h"

#include "backends/vulkan/device/device.h"
#include "runtime/backend/abi.h"
#include "runtime/core/exception.h"

namespace librt::vulkan {
namespace {

Status probe(std::vector<DeviceInfo>& devices, std::string& reason) noexcept {
  RT_ATTEMPT {
    auto instance = Instance::open(false);
    if (!instance.ok()) {
      reason = instance.status().message();
      return {};
    }
    std::vector<DeviceFacts> facts;
    std::vector<VkPhysicalDevice> handles;
    if (const Status status = (*instance)->list(facts, handles); !status.ok()) {
      reason = status.message();
      return {};
    }
    if (facts.empty()) reason = "the Vulkan drivers list no device";
    for (size_t i = 0; i < facts.size(); ++i)
      devices.push_back(describe_device(facts[i], static_cast<int>(i)));
    return {};
  }
  RT_CAUGHT {
    return caught_exception("looking for Vulkan devices");
  }
}

Result<DevicePtr> open(const DeviceOptions& options) noexcept {
  RT_ATTEMPT {
    return VulkanDevice::open(options);
  }
  RT_CAUGHT {
    return caught_exception("opening a Vulkan device");
  }
}

Interop* interop(Device& device) noexcept {
  return &cast(device).interop();
}

constexpr BackendModule kModule{sizeof(BackendModule), RT_BACKEND_ABI, "vulkan", probe, open, interop};

}  // namespace
}  // namespace librt::vulkan

const librt::BackendModule* rt_backend_module(void) {
  return &librt::vulkan::kModule;
}
