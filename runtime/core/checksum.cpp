#include "runtime/core/checksum.h"

// Inlined only here and in checksum_avx2.cpp, so that librt has no run-time dependency on a hash library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace librt {

#if defined(__x86_64__)
uint64_t checksum_avx2(const void* bytes, size_t size) noexcept;  // checksum_avx2.cpp

uint64_t checksum(const void* bytes, size_t size) noexcept {
  // Long ranges are read at the speed of the caches with AVX2, at a third of it without.
  constexpr size_t kLong = 4096;
  if (size >= kLong && __builtin_cpu_supports("avx2")) return checksum_avx2(bytes, size);
  return XXH3_64bits(bytes, size);
}
#else
uint64_t checksum(const void* bytes, size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}
#endif

}  // namespace librt
