// Two-operand loops: arithmetic and comparisons.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

enum class BinaryFunction : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Pow,
  Minimum,
  Maximum,
  Mod,
  ModTruncated,
  GeluGrad,  ///< a f'(b), as the next two; floats only
  GeluTanhGrad,
  SiluGrad,
  Count
};
enum class CompareFunction : uint8_t { Equal, Less, LessOrEqual, Greater, GreaterOrEqual, Count };

/// Which operands of a two-operand loop advance: both, only a (b is a scalar), only b.
enum class Advance : uint8_t { Both = 0, First = 1, Second = 2 };

struct BinaryLoops {
  using Binary = void (*)(const float* a, const float* b, float* y, int64_t n);
  using Compare = void (*)(const float* a, const float* b, uint8_t* y, int64_t n);
  Binary binary[static_cast<int>(BinaryFunction::Count)][3];  ///< by Advance
  Compare compare[static_cast<int>(CompareFunction::Count)][3];
};
RT_DECLARE_LOOPS(BinaryLoops);

}  // namespace librt::cpu
