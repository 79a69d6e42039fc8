// The one seeded random number generator, for weights, test inputs and the order of samples. Not
// cryptographic.
#pragma once

#include <cstdint>

namespace librt {

/// SplitMix64 (Steele, Lea & Flood 2014): advances `state`, returns 64 random bits. The same on every
/// machine.
constexpr uint64_t split_mix(uint64_t& state) noexcept {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace librt
