// The backends of this process: which there are, what devices they offer, and why not.
//
// Knows: names, modules. Must not know: sessions, how a device is chosen for a model.
#pragma once

#include <string>
#include <vector>

#include "runtime/backend/module.h"

namespace rt {

struct BackendReport {
  std::string name;
  std::vector<DeviceInfo> devices;
  std::string reason;  ///< why there is no device; empty when there is one
};

/// cpu, cuda, vulkan, reference, and modules found besides these.
std::vector<std::string> backend_names();

/// Asks every backend. Never fails: what goes wrong becomes the backend's reason.
std::vector<BackendReport> probe_backends();

/// Opens a device of this backend. Errors name the backend.
Result<DevicePtr> open_device(std::string_view backend, const DeviceOptions& options);

}  // namespace rt
