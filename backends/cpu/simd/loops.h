// What the sources of the families share: the definition of a family's loops for one instruction set.
#pragma once

#include "backends/cpu/simd/simd.h"

/// At the end of FAMILY.cpp: the result of its make_loops().
#define RT_DEFINE_LOOPS(Loops)                                                     \
  namespace librt::cpu {                                                           \
  template <>                                                                      \
  constinit const Loops LoopTable<Loops>::RT_SIMD_ISA = RT_SIMD_ISA::make_loops(); \
  }                                                                                \
  static_assert(true)

namespace librt::cpu::RT_SIMD_ISA {

/// transpose.cpp, for matrices in the caches.
void transpose(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t columns);

}  // namespace librt::cpu::RT_SIMD_ISA
