// XXH3-64, the checksum of .rt files and checkpoints.
//
// Against damage, not against an attacker, who writes the right checksum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace librt {

uint64_t checksum(const void* bytes, size_t size) noexcept;

}  // namespace librt
