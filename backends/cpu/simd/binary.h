// Two-operand loops: arithmetic and comparisons.
#pragma once

#include "backends/cpu/simd/simd.h"
#include "runtime/core/binary_function.h"

namespace librt::cpu {

/// Which operands of a two-operand loop advance: both, only a (b is a scalar), only b.
enum class Advance : uint8_t { Both = 0, First = 1, Second = 2 };

struct BinaryLoops {
  using Binary = void (*)(const float* a, const float* b, float* y, int64_t n);
  using Compare = void (*)(const float* a, const float* b, uint8_t* y, int64_t n);
  Binary binary[kBinaryFunctionCount][3];  ///< by Advance; null for functions of booleans and integers, and
                                           ///< those that are not in the build
  Compare compare[kCompareFunctionCount][3];
};
RT_DECLARE_LOOPS(BinaryLoops);

}  // namespace librt::cpu
