// The most threads of a session: of librt's own pools, and of an application's.
#pragma once

namespace librt {

inline constexpr int kMostThreads = 4096;

}  // namespace librt
