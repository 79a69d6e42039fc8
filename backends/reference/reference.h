// The reference backend: every operator by its page's reference value, on host memory. Slow and exact.
//
// Knows: the contract of a backend and ops::evaluate_node. Tests and `--backend reference` compare with it,
// and it is the fallback for a node that no other backend has a kernel for. Must not know: sessions.
#pragma once

#include <string>
#include <vector>

#include "runtime/backend/backend.h"

namespace librt::reference {

Status probe(std::vector<DeviceInfo>& devices, std::string& reason) noexcept;
Result<DevicePtr> open(const DeviceOptions& options) noexcept;

}  // namespace librt::reference
