// Elementary functions of one scalar on the device: in float, double, or exact integers. NaN stays NaN.
#pragma once

#include "kernels/common.cuh"
#include "kernels/functions.h"

namespace librt::cuda {

/// y = f(x) for the functions of epilogues, F = float or double; `alpha` and `beta` as in FunctionCall.
/// Separate from the others, so that GEMM kernels do not carry their code.
template <class F>
RT_DEVICE F activation_value(Function function, F x, F alpha, F beta) {
  switch (function) {
    case Function::Relu: return x < F(0) ? F(0) : x;
    case Function::Clip: return x < alpha ? (alpha < beta ? alpha : beta) : x > beta ? beta : x;
    case Function::Sigmoid: return F(1) / (F(1) + exp(-x));
    case Function::Tanh: return tanh(x);
    case Function::HardSwish: {
      const F gate = x / F(6) + F(0.5);
      return x * (gate < F(0) ? F(0) : gate > F(1) ? F(1) : gate);
    }
    case Function::Silu: return x / (F(1) + exp(-x));
    case Function::Gelu: return F(0.5) * x * (F(1) + erf(x * F(0.70710678118654752)));
    case Function::GeluTanh:
      return F(0.5) * x * (F(1) + tanh(F(0.79788456080286536) * (x + F(0.044715) * x * x * x)));
    case Function::LeakyRelu: return x < F(0) ? alpha * x : x;
    case Function::HardSigmoid: {
      const F y = alpha * x + beta;
      return y < F(0) ? F(0) : y > F(1) ? F(1) : y;
    }
    default: return x;
  }
}

/// y = f(x) for every function.
template <class F>
RT_DEVICE F function_value(Function function, F x, F alpha, F beta) {
  switch (function) {
    case Function::Abs: return fabs(x);
    case Function::Neg: return -x;
    case Function::Exp: return exp(x);
    case Function::Log: return log(x);
    case Function::Sqrt: return sqrt(x);
    case Function::Reciprocal: return F(1) / x;
    case Function::Sin: return sin(x);
    case Function::Cos: return cos(x);
    case Function::Erf: return erf(x);
    case Function::Floor: return floor(x);
    case Function::Ceil: return ceil(x);
    case Function::Round: return rint(x);
    case Function::Sign: return x > F(0) ? F(1) : x < F(0) ? F(-1) : x;
    case Function::Softplus: return (x > F(0) ? x : F(0)) + log1p(exp(-fabs(x))) + (x != x ? x : F(0));
    case Function::Elu: return x < F(0) ? alpha * expm1(x) : x;
    case Function::Atan: return atan(x);
    default: return activation_value(function, x, alpha, beta);
  }
}

/// The functions defined on integers: Abs, Neg, Relu, Sign, Clip (with bounds of type T), Not. Negation
/// wraps.
template <class T>
RT_DEVICE T integer_function_value(Function function, T x, T low, T high) {
  const T negative = static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  switch (function) {
    case Function::Abs: return x < T{0} ? negative : x;
    case Function::Neg: return negative;
    case Function::Relu: return x < T{0} ? T{0} : x;
    case Function::Sign: return x > T{0} ? T{1} : x < T{0} ? static_cast<T>(-1) : T{0};
    case Function::Clip: {
      const T raised = x < low ? low : x;
      return raised > high ? high : raised;
    }
    case Function::Not: return x == T{0} ? T{1} : T{0};
    default: return x;
  }
}

}  // namespace librt::cuda
