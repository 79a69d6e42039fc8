#include "runtime/model/format.h"

// Inlined here alone, so that librt depends on no hash library at run time.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rt {

uint64_t checksum(const void* bytes, size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}

}  // namespace rt
