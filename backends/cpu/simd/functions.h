// The formulas of Function on one float, for the element-wise loops and for recurrent cells. Built from
// math.h.
#pragma once

#include "backends/cpu/simd/math.h"
#include "runtime/core/function.h"

namespace librt::cpu::RT_SIMD_ISA {

/// y = f(x); alpha and beta as in FunctionCall. A function without a formula does not compile (-Wswitch).
template <Function kFunction>
RT_INLINE float function_value(float x, [[maybe_unused]] float alpha, [[maybe_unused]] float beta) {
  switch (kFunction) {
    case Function::Identity: return x;
    case Function::Relu: return pick(x < 0.0f, 0.0f, x);
    case Function::Clip: {
      const float raised = pick(x < alpha, alpha, x);
      return pick(raised > beta, beta, raised);
    }
    case Function::Sigmoid: return sigmoid(x);
    case Function::Tanh: return tanh(x);
    case Function::HardSwish: return x * clamp_unit(x * 0.16666667f + 0.5f);
    case Function::Silu: return silu(x);
    case Function::Gelu: return gelu(x);
    case Function::GeluTanh: return gelu_tanh(x);
    case Function::LeakyRelu: return pick(x < 0.0f, alpha * x, x);
    case Function::HardSigmoid: return clamp_unit(alpha * x + beta);
    case Function::Abs: return absolute(x);
    case Function::Neg: return -x;
    case Function::Exp: return exp(x);
    case Function::Log: return log(x);
    case Function::Sqrt: return __builtin_sqrtf(x);
    case Function::Reciprocal: return 1.0f / x;
    case Function::Sin: return sine(x, 0);  // |x| < kTrigLimit
    case Function::Cos: return sine(x, 1);
    case Function::Erf: return erf(x);
    case Function::Floor: return __builtin_floorf(x);
    case Function::Ceil: return __builtin_ceilf(x);
    case Function::Round: return __builtin_rintf(x);
    case Function::Sign: return pick(x > 0.0f, 1.0f, pick(x < 0.0f, -1.0f, x));
    case Function::Softplus: return softplus(x);
    case Function::Elu: return pick(x < 0.0f, alpha * expm1(x), x);
    case Function::Not: return pick(x == 0.0f, 1.0f, 0.0f);
    case Function::Atan: return atan(x);
    case Function::Affine: return alpha * x + beta;
    case Function::ThresholdedRelu: return pick((x > alpha) | (x != x), x, 0.0f);
    case Function::ScaledTanh: return alpha * tanh(beta * x);
    case Function::Softsign: return x / (1.0f + absolute(x));
  }
}

}  // namespace librt::cpu::RT_SIMD_ISA
