// y = f(x) for every unary function.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// y = f(x). alpha and beta are the operator's attributes: LeakyRelu and Elu slope; HardSigmoid slope and
/// offset; Clip minimum and maximum.
enum class UnaryFunction : uint8_t {
  Abs,
  Neg,
  Exp,
  Log,
  Sqrt,
  Reciprocal,
  Sin,
  Cos,
  Tanh,
  Sigmoid,
  Relu,
  Erf,
  Floor,
  Ceil,
  Round,
  Sign,
  Softplus,
  LeakyRelu,
  Elu,
  HardSigmoid,
  HardSwish,
  Clip,
  Gelu,
  GeluTanh,
  Silu,
  Atan,
  Count
};

struct UnaryLoops {
  using Unary = void (*)(const float* x, float* y, int64_t n, float alpha, float beta);
  Unary unary[static_cast<int>(UnaryFunction::Count)];
};
RT_DECLARE_LOOPS(UnaryLoops);

}  // namespace librt::cpu
