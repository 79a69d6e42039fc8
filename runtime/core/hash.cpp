#include "runtime/core/hash.h"

namespace librt {

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) seed = (seed ^ p[i]) * 0x100000001b3u;
  return seed;
}

std::string hex(uint64_t number) {
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; number >>= 4) out[i] = "0123456789abcdef"[number & 15];
  return out;
}

}  // namespace librt
