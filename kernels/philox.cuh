// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; 2011), bit for bit
// as runtime/core/philox.h has it.
#pragma once

#include "kernels/port.cuh"

namespace librt::cuda {

struct PhiloxBlock {
  uint32_t words[4];
};

/// Block `index` of the stream that seed and counter name.
RT_DEVICE PhiloxBlock philox(uint64_t seed, uint64_t counter, uint64_t index) {
  uint32_t x0 = static_cast<uint32_t>(index), x1 = static_cast<uint32_t>(index >> 32);
  uint32_t x2 = static_cast<uint32_t>(counter), x3 = static_cast<uint32_t>(counter >> 32);
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  RT_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x0, b = uint64_t{0xCD9E8D57u} * x2;
    x0 = static_cast<uint32_t>(b >> 32) ^ x1 ^ key0;
    x1 = static_cast<uint32_t>(b);
    x2 = static_cast<uint32_t>(a >> 32) ^ x3 ^ key1;
    x3 = static_cast<uint32_t>(a);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{x0, x1, x2, x3}};
}

/// In [0, 1), a multiple of 2^-24: exact in f32.
RT_DEVICE float uniform24(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}
/// In [0, 1), a multiple of 2^-53.
RT_DEVICE double uniform53(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace librt::cuda
