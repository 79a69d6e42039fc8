// The export of a backend module: one C symbol, `rt_backend_module`, with an ABI stamp.
//
// Modules are built from the same tree as librt; with the stamp (a hash over the headers of runtime/core,
// graph, backend and of the schema) the loader rejects any other with an error message instead of a crash.
#pragma once

#include "runtime/backend/interop.h"

namespace librt {

struct BackendModule {
  uint32_t size;     ///< sizeof(BackendModule)
  const char* abi;   ///< RT_BACKEND_ABI of the build
  const char* name;  ///< "cpu", "vulkan", "cuda"
  /// Lists the devices; none is not an error: then `reason` gives the cause in one sentence.
  Status (*probe)(std::vector<DeviceInfo>& devices, std::string& reason) noexcept;
  Result<DevicePtr> (*open)(const DeviceOptions& options) noexcept;
  /// Of a device that open() returned, owned by it. Null: host addresses are all that it shares.
  Interop* (*interop)(Device& device) noexcept = nullptr;
};

}  // namespace librt

#define RT_BACKEND_MODULE_SYMBOL "rt_backend_module"
extern "C" __attribute__((visibility("default"))) const librt::BackendModule* rt_backend_module(void);
