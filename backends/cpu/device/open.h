// Finding and opening the CPU device: what the module exports and tests call directly.
#pragma once

#include <string>
#include <vector>

#include "runtime/backend/backend.h"

namespace librt::cpu {

/// The machine's one CPU device.
Status probe(std::vector<DeviceInfo>& devices, std::string& reason) noexcept;
Result<DevicePtr> open(const DeviceOptions& options) noexcept;

}  // namespace librt::cpu
