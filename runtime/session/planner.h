// Memory planning as a pure function: lifetimes in, offsets and peak out.
//
// Knows: sizes and when they are alive. Must not know: what lives there, devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rt {

/// Bytes that are in use during the steps [first, last], both included.
struct Lifetime {
  uint32_t first = 0;
  uint32_t last = 0;
  size_t bytes = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  ///< one for each lifetime, multiples of the alignment
  size_t peak = 0;              ///< bytes that hold everything
  size_t naive = 0;             ///< bytes without any sharing
};

/// Places each range at the lowest offset (the tightest gap among those that fit) where it overlaps no other
/// that is alive at the same time; the largest are placed first, among equals the earliest. O(n^2) in the
/// worst case. alignment: a power of two. Ranges of 0 bytes get offset 0.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, size_t alignment = 64);

}  // namespace rt
