// The module's one exported symbol.
#include "runtime/backend/module.h"

#include "backends/cuda/device/device.h"
#include "runtime/backend/abi.h"
#include "runtime/core/exception.h"

namespace librt::cuda {
namespace {

Status probe(std::vector<DeviceInfo>& devices, std::string& reason) noexcept {
  try {
    std::vector<DeviceFacts> facts;
    if (const Status status = list_devices(facts); !status.ok()) {
      reason = status.message();
      return {};
    }
    for (const DeviceFacts& device : facts) {
      if (const Status status = usable(device); !status.ok())
        reason = status.message();
      else
        devices.push_back(describe(device));
    }
    return {};
  } catch (...) {
    return caught_exception("looking for CUDA devices");
  }
}

Result<DevicePtr> open(const DeviceOptions& options) noexcept {
  return CudaDevice::open(options);
}

Interop* interop(Device& device) noexcept {
  return &cast(device).interop();
}

constexpr BackendModule kModule{sizeof(BackendModule), RT_BACKEND_ABI, RT_CUDA_BACKEND, probe, open, interop};

}  // namespace
}  // namespace librt::cuda

const librt::BackendModule* rt_backend_module(void) {
  return &librt::cuda::kModule;
}
