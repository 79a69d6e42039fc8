// Memory of the application, of a fixed size, as an allocator.
//
// Knows: blocks in one range. Must not know: what they hold.
#pragma once

#include <cstddef>

#include "runtime/include/rt/hooks.h"

namespace librt {

/// Less holds not even one block.
inline constexpr size_t kLeastArena = 256;

/// Hands out what is asked for in multiples of 64 bytes, at multiples of 64, from `memory` alone: what is
/// kept about a block, 64 bytes, stands in front of it. The first free block that is large enough is taken;
/// neighbours that are free become one. For one thread at a time. bytes: at least kLeastArena.
rt_allocator arena_allocator(void* memory, size_t bytes) noexcept;

}  // namespace librt
