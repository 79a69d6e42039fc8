// y = f(x) for every Function.
#pragma once

#include "backends/cpu/simd/simd.h"
#include "runtime/core/function.h"

namespace librt::cpu {

/// By Function, null for those that are not in the build; alpha and beta as in FunctionCall.
struct UnaryLoops {
  using Unary = void (*)(const float* x, float* y, int64_t n, float alpha, float beta);
  Unary unary[kFunctionCount];
};
RT_DECLARE_LOOPS(UnaryLoops);

}  // namespace librt::cpu
