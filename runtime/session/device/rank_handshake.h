// What the ranks of data-parallel training exchange before they open their devices.
//
// Knows: the application's communicator. Must not know: devices.
#pragma once

#include <string>

#include "runtime/backend/backend.h"

namespace librt {

bool has_other_ranks(const rt_communicator* communicator) noexcept;

/// Sets local_rank and same_backend. All ranks call this before they open a device of `backend`. Fails if the
/// ranks cannot communicate.
Status rank_handshake(const std::string& backend, DeviceOptions& options);

}  // namespace librt
