// The backends of this process: their names and devices, and why a backend has none.
//
// Knows: names, modules. Must not know: sessions, how a device is chosen for a model.
#pragma once

#include <string>
#include <vector>

#include "runtime/backend/module.h"

namespace librt {

struct BackendReport {
  std::string name;
  std::vector<DeviceInfo> devices;
  std::string reason;  ///< why there is no device; empty if there is one
};

/// cpu, cuda, vulkan, reference, and any other modules found.
std::vector<std::string> backend_names();

/// Queries every backend. Never fails: errors become the backend's reason.
std::vector<BackendReport> probe_backends();

/// Opens a device of this backend. Errors name the backend.
Result<DevicePtr> open_device(std::string_view backend, const DeviceOptions& options);

/// Of a device that open_device() returned for this backend; null if it has none.
Interop* interop_of(std::string_view backend, Device& device);

}  // namespace librt
