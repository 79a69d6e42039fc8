// The clock of profiles.
#pragma once

#include <chrono>
#include <cstdint>

namespace librt {

using Clock = std::chrono::steady_clock;

inline uint64_t nanoseconds_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

}  // namespace librt
