// What the ranks of a data parallel training tell each other before they open their devices.
//
// Knows: the application's communicator. Must not know: devices.
#pragma once

#include <string>

#include "runtime/backend/backend.h"

namespace rt {

bool has_other_ranks(const rt_communicator* communicator) noexcept;

/// Sets local_rank and same_backend. All ranks call this when they are about to open a device of `backend`.
/// Fails when the ranks cannot talk to each other.
Status introduce(const std::string& backend, DeviceOptions& options);

}  // namespace rt
