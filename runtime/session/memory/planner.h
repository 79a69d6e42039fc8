// Memory planning as a pure function: lifetimes in, offsets and peak out.
//
// Knows: sizes and live ranges. Must not know: what is stored there, devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace librt {

/// Bytes in use during the steps [first, last], both inclusive.
struct Lifetime {
  uint32_t first = 0;
  uint32_t last = 0;
  uint64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  ///< one per live range, multiples of the alignment
  uint64_t peak = 0;              ///< bytes needed for everything
  uint64_t naive = 0;             ///< bytes without memory reuse
};

/// Bounds of the time: up to so many ranges each is compared with all others.
inline constexpr size_t kManyRanges = 8192;
inline constexpr size_t kMostNeighbours = 1024;

/// Places each range at the lowest offset (the tightest gap among those that fit) where it overlaps no other
/// range that is live at the same time; largest first, earliest first among equals. Of more than kManyRanges,
/// those with more than kMostNeighbours that are placed already come after all of them. alignment: a power of
/// two. Ranges of 0 bytes get offset 0.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t alignment = 64);

}  // namespace librt
