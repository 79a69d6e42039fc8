// The clock of profiles.
#pragma once

#include <chrono>
#include <cstdint>

namespace librt {

/// Not `Clock`: files that are compiled together have aliases of that name.
using ProfileClock = std::chrono::steady_clock;

inline uint64_t nanoseconds_since(ProfileClock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(ProfileClock::now() - start).count());
}

}  // namespace librt
