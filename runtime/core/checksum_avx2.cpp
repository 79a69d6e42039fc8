// checksum() with AVX2: this file alone is compiled for it.
#if defined(__x86_64__)
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace librt {

uint64_t checksum_avx2(const void* bytes, size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}

}  // namespace librt
#endif
