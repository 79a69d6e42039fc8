// checksum() with AVX2: this file alone is compiled for it.
#if defined(__x86_64__)
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace librt {

/// Only for ranges of more than 240 bytes, which is all that checksum() has for it: the code for shorter ones
/// is not here a second time.
uint64_t checksum_avx2(const void* bytes, size_t size) noexcept {
  if (size <= XXH3_MIDSIZE_MAX) __builtin_unreachable();
  return XXH3_64bits(bytes, size);
}

}  // namespace librt
#endif
