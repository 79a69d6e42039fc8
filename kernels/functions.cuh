// Elementary functions of one scalar on the device: in float, double, or exact integers. NaN stays NaN.
#pragma once

#include <cmath>

#include "kernels/common.cuh"
#include "runtime/core/function.h"

namespace librt::cuda {

/// y = f(x), F = float or double; alpha and beta as in FunctionCall. A function without a formula does not
/// compile (-Wswitch).
template <Function kFunction, class F>
RT_DEVICE F formula(F x, [[maybe_unused]] F alpha, [[maybe_unused]] F beta) {
  switch (kFunction) {
    case Function::Identity: return x;
    case Function::Relu: return x < F(0) ? F(0) : x;
    case Function::Clip: return x < alpha ? (alpha < beta ? alpha : beta) : x > beta ? beta : x;
    case Function::Sigmoid: return F(1) / (F(1) + exp(-x));
    case Function::Tanh: return std::tanh(x);
    case Function::HardSwish: {
      const F gate = x / F(6) + F(0.5);
      return x * (gate < F(0) ? F(0) : gate > F(1) ? F(1) : gate);
    }
    case Function::Silu: return x / (F(1) + exp(-x));
    case Function::Gelu: return F(0.5) * x * (F(1) + std::erf(x * F(0.70710678118654752)));
    case Function::GeluTanh:
      return F(0.5) * x * (F(1) + std::tanh(F(0.79788456080286536) * (x + F(0.044715) * x * x * x)));
    case Function::LeakyRelu: return x < F(0) ? alpha * x : x;
    case Function::HardSigmoid: {
      const F y = alpha * x + beta;
      return y < F(0) ? F(0) : y > F(1) ? F(1) : y;
    }
    case Function::Abs: return fabs(x);
    case Function::Neg: return -x;
    case Function::Exp: return exp(x);
    case Function::Log: return log(x);
    case Function::Sqrt: return sqrt(x);
    case Function::Reciprocal: return F(1) / x;
    case Function::Sin: return sin(x);
    case Function::Cos: return cos(x);
    case Function::Erf: return std::erf(x);
    case Function::Floor: return floor(x);
    case Function::Ceil: return ceil(x);
    case Function::Round: return rint(x);
    case Function::Sign: return x > F(0) ? F(1) : x < F(0) ? F(-1) : x;
    case Function::Softplus: return (x > F(0) ? x : F(0)) + log1p(exp(-fabs(x))) + (x != x ? x : F(0));
    case Function::Elu: return x < F(0) ? alpha * expm1(x) : x;
    case Function::Not: return x == F(0) ? F(1) : F(0);
    case Function::Atan: return atan(x);
    case Function::Affine: return alpha * x + beta;
    case Function::ThresholdedRelu: return x <= alpha ? F(0) : x;
    case Function::ScaledTanh: return alpha * std::tanh(beta * x);
    case Function::Softsign: return x / (F(1) + fabs(x));
  }
  return x;
}

// What kernels choose from at run time. Each of these carries the code of its own functions only.
#define RT_FORMULA(Name) \
  case Function::Name: return formula<Function::Name>(x, alpha, beta)

/// The functions of epilogues.
template <class F>
RT_DEVICE F activation_value(Function function, F x, F alpha, F beta) {
  switch (function) {
    RT_FORMULA(Relu);
    RT_FORMULA(Clip);
    RT_FORMULA(Sigmoid);
    RT_FORMULA(Tanh);
    RT_FORMULA(HardSwish);
    RT_FORMULA(Silu);
    RT_FORMULA(Gelu);
    RT_FORMULA(GeluTanh);
    RT_FORMULA(LeakyRelu);
    RT_FORMULA(HardSigmoid);
    default: return x;
  }
}

/// The functions of recurrent cells.
RT_DEVICE float cell_value(Function function, float x, float alpha, float beta) {
  switch (function) {
    RT_FORMULA(Relu);
    RT_FORMULA(Sigmoid);
    RT_FORMULA(Affine);
    RT_FORMULA(LeakyRelu);
    RT_FORMULA(ThresholdedRelu);
    RT_FORMULA(ScaledTanh);
    RT_FORMULA(HardSigmoid);
    RT_FORMULA(Elu);
    RT_FORMULA(Softsign);
    RT_FORMULA(Softplus);
    default: return formula<Function::Tanh>(x, alpha, beta);
  }
}

/// Every function.
template <class F>
RT_DEVICE F function_value(Function function, F x, F alpha, F beta) {
  switch (function) {
#define RT_FUNCTION(Name, operands) RT_FORMULA(Name);
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
  }
  return x;
}
#undef RT_FORMULA

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
