#include "backends/cpu/simd/simd.h"

#include <cstring>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime/core/environment.h"

namespace librt::cpu {

#if defined(__x86_64__)
namespace {

/// CPUID leaf 7, subleaf 1, EAX bit 4 (Intel SDM, volume 2A); not every compiler knows the name.
bool has_avx_vnni() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

}  // namespace
#endif

int available_simd(const Simd* (&sets)[3]) noexcept {
  int count = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  static const Simd kAvx512{"avx512", 2, __builtin_cpu_supports("avx512vnni") != 0};
  static const Simd kAvx2{"avx2", 1, has_avx_vnni()};
  if (kHasAvx512 && v4) sets[count++] = &kAvx512;
  if (kHasAvx2 && v3) sets[count++] = &kAvx2;
#endif
#if defined(__aarch64__)
#if defined(__linux__)
  constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
  static constexpr Simd kDotProd{"dotprod", 0, true};
  if ((getauxval(AT_HWCAP) & kDotProducts) != 0) sets[count++] = &kDotProd;
#endif
  static constexpr Simd kBaseline{"neon", 0, false};
#else
  static constexpr Simd kBaseline{"baseline", 0, false};
#endif
  sets[count++] = &kBaseline;
  return count;
}

const Simd& best_simd() noexcept {
  const Simd* sets[3] = {};
  const int count = available_simd(sets);
  if (const char* wanted = environment("RT_CPU_ISA"); wanted != nullptr)
    for (int i = 0; i < count; ++i)
      if (std::strcmp(sets[i]->name, wanted) == 0) return *sets[i];
  return *sets[0];
}

}  // namespace librt::cpu
