// The memory of this machine.
//
// Knows: the system's and the cgroup's figures. Must not know: what is allocated.
#pragma once

#include <cstdint>

namespace librt {

/// Physical memory in bytes, or the limit of the cgroup if that is less; 0 if neither is known. Read once.
uint64_t host_memory_bytes() noexcept;

}  // namespace librt
