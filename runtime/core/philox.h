// Philox4x32-10: a counter-based random number generator (Salmon, Moraes, Dror, Shaw: Parallel Random
// Numbers: As Easy as 1, 2, 3; 2011). Each element of a stream is computed independently, so results do not
// depend on threads or devices.
//
// Knows: bits, and uniform values derived from them. Must not know: tensors.
#pragma once

#include <array>
#include <cstdint>

namespace librt {

using PhiloxBlock = std::array<uint32_t, 4>;

/// Block `index` of the stream given by seed and counter.
inline PhiloxBlock philox(uint64_t seed, uint64_t counter, uint64_t index) noexcept {
  PhiloxBlock x{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32)};
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

/// In [0, 1), a multiple of 2^-24: exact in f32.
inline float uniform24(uint32_t bits) noexcept {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}
/// In [0, 1), a multiple of 2^-53.
inline double uniform53(uint32_t high, uint32_t low) noexcept {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace librt
