// Byte counts: 64 bits wide in files and plans, size_t where memory is addressed.
//
// Knows: what a machine's addresses reach. Must not know: what the bytes are for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/status.h"

namespace librt {

/// The most bytes of one range of memory: what the difference of two addresses counts.
inline constexpr uint64_t kMostAddressable = PTRDIFF_MAX;

/// OutOfMemory on a 32-bit machine whose addresses do not reach so far; afterwards a cast to size_t changes
/// nothing. On other machines it compiles to nothing, and an allocation of too many bytes fails.
[[gnu::always_inline]] inline Status check_addressable(uint64_t bytes) noexcept {
  if constexpr (sizeof(size_t) < sizeof(uint64_t))
    if (bytes > kMostAddressable)
      return Status::make(Code::OutOfMemory, "needs ", bytes_text(bytes), " (", bytes,
                          " bytes), this machine addresses at most ", bytes_text(kMostAddressable));
  return {};
}

/// For the size of a container: where size_t cannot hold `count`, the largest one, of which the container
/// throws.
constexpr size_t container_size(uint64_t count) noexcept {
  if constexpr (sizeof(size_t) < sizeof(uint64_t))
    if (count > SIZE_MAX) return SIZE_MAX;
  return static_cast<size_t>(count);
}

}  // namespace librt
