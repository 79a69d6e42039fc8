// The instruction sets for which the loops of this directory are compiled, and the choice among them at run
// time.
//
// Knows: which instruction sets this machine runs. Must not know: what the loops compute (FAMILY.h), tensors.
// A family is FAMILY.h, a struct of function pointers over contiguous data with RT_DECLARE_LOOPS, and
// FAMILY.cpp, which fills it with RT_DEFINE_LOOPS (loops.h); the build finds both.
//
// The families' sources are compiled once for each instruction set, with other flags and another value of
// RT_SIMD_ISA; they therefore use nothing inline from the standard library, because the linker keeps only one
// copy of such a function and it might be the one with instructions that this machine lacks.
#pragma once

#include <cstdint>

namespace librt::cpu {

/// A result of this many bytes does not stay in the caches until it is read: non-temporal stores save reading
/// its lines first.
inline constexpr int64_t kPastCaches = int64_t{8} << 20;

/// Instruction sets of x86-64 for which this build has loops (RT_CPU_ISAS).
#if defined(__x86_64__) && !defined(RT_CPU_WITHOUT_AVX2)
inline constexpr bool kHasAvx2 = true;
#else
inline constexpr bool kHasAvx2 = false;
#endif
#if defined(__x86_64__) && !defined(RT_CPU_WITHOUT_AVX512)
inline constexpr bool kHasAvx512 = true;
#else
inline constexpr bool kHasAvx512 = false;
#endif

/// The loops of one family, compiled for each instruction set.
template <class Loops>
struct LoopTable {
  static const Loops baseline, avx2, avx512;
};
#define RT_DECLARE_LOOPS(Loops)           \
  template <>                             \
  const Loops LoopTable<Loops>::baseline; \
  template <>                             \
  const Loops LoopTable<Loops>::avx2;     \
  template <>                             \
  const Loops LoopTable<Loops>::avx512

/// An instruction set that this machine runs and this build has.
struct Simd {
  static constexpr int64_t kColumns = 128;  ///< columns at a time, for loops down columns

  /// "avx512", "avx2", "baseline"; AArch64's baseline is "neon", or "dotprod" with what its name says.
  const char* name;
  int index;          ///< 0: baseline, 1: avx2, 2: avx512
  bool dot_products;  ///< of 8-bit integers (AVX-VNNI, AVX-512 VNNI, dotprod): for functions that need them
                      ///< in any table

  /// The loops of a family: loops<ScanLoops>().
  template <class Loops>
  const Loops& loops() const noexcept {
#if defined(__x86_64__)
    using Table = LoopTable<Loops>;
    static constexpr const Loops* kTables[] = {&Table::baseline, kHasAvx2 ? &Table::avx2 : nullptr,
                                               kHasAvx512 ? &Table::avx512 : nullptr};
    return *kTables[index];
#else
    return LoopTable<Loops>::baseline;
#endif
  }
};

/// The widest instruction set of available_simd(). RT_CPU_ISA=baseline|avx2|avx512, on AArch64
/// neon|dotprod, in the environment selects a narrower one.
const Simd& best_simd() noexcept;
/// Every instruction set that this machine runs and this build has, widest first.
int available_simd(const Simd* (&sets)[3]) noexcept;

}  // namespace librt::cpu
