#include "backends/cpu/simd/simd.h"

#include <cstdlib>
#include <cstring>

namespace librt::cpu {

namespace baseline {
const Simd& table() noexcept;
}
#if defined(__x86_64__)
namespace avx2 {
const Simd& table() noexcept;
}
namespace avx512 {
const Simd& table() noexcept;
}
#endif

int available_simd(const Simd* (&sets)[3]) noexcept {
  int count = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (v4) sets[count++] = &avx512::table();
  if (v3) sets[count++] = &avx2::table();
#endif
  sets[count++] = &baseline::table();
  return count;
}

const Simd& best_simd() noexcept {
  const Simd* sets[3] = {};
  const int count = available_simd(sets);
  if (const char* wanted = std::getenv("RT_CPU_ISA"); wanted != nullptr)
    for (int i = 0; i < count; ++i)
      if (std::strcmp(sets[i]->name, wanted) == 0) return *sets[i];
  return *sets[0];
}

}  // namespace librt::cpu
