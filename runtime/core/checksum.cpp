#include "runtime/core/checksum.h"

// Inlined only here and in checksum_avx2.cpp, so that librt has no run-time dependency on a hash library.
#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(__x86_64__) && !defined(__clang__)
#include <sys/platform/x86.h>
#endif

namespace librt {

#if defined(__x86_64__)
uint64_t checksum_avx2(const void* bytes, size_t size) noexcept;  // checksum_avx2.cpp

static bool has_avx2() noexcept {
#if defined(__clang__)  // its C++ has no _Bool, which that header needs
  return __builtin_cpu_supports("avx2") != 0;
#else
  return CPU_FEATURE_ACTIVE(AVX2);  // the builtin is 8 KB of librt
#endif
}

uint64_t checksum(const void* bytes, size_t size) noexcept {
  // Long ranges are read at the speed of the caches with AVX2, at a third of it without.
  constexpr size_t kLong = 4096;
  if (size >= kLong && has_avx2()) return checksum_avx2(bytes, size);
  return XXH3_64bits(bytes, size);
}
#else
uint64_t checksum(const void* bytes, size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}
#endif

}  // namespace librt
