#include "runtime/model/format.h"

// Inlined only here, so that librt has no run-time dependency on a hash library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace librt {

uint64_t checksum(const void* bytes, size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}

}  // namespace librt
