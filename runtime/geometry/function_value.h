// The functions in double: what the pages mean by them, and what backends compute where they have no vector
// loop.
//
// Knows: one formula per function. Must not know: operators, tensors. NaN stays NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/core/function.h"

namespace librt {

/// y = f(x); alpha and beta as in FunctionCall. A function without a formula does not compile (-Wswitch).
template <Function kFunction>
double function_value(double x, [[maybe_unused]] double alpha, [[maybe_unused]] double beta) noexcept {
  const auto unit = [](double value) {  // into [0, 1]
    return std::isnan(value) ? value : std::min(std::max(value, 0.0), 1.0);
  };
  switch (kFunction) {
    case Function::Identity: return x;
    case Function::Relu: return x < 0 ? 0 : x;
    case Function::Clip: return std::isnan(x) ? x : std::min(std::max(x, alpha), beta);
    case Function::Sigmoid: {
      if (!(x < 0)) return 1 / (1 + std::exp(-x));
      const double power = std::exp(x);
      return power / (1 + power);
    }
    case Function::Tanh: return std::tanh(x);
    case Function::HardSwish: return x == 0 ? x : x * unit(x / 6 + 0.5);
    case Function::Silu: return x / (1 + std::exp(-x));
    case Function::Gelu: return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case Function::GeluTanh: {
      constexpr double kScale = 0.7978845608028654;  // sqrt(2 / pi)
      return 0.5 * x * (1 + std::tanh(kScale * (x + 0.044715 * x * x * x)));
    }
    case Function::LeakyRelu: return x < 0 ? alpha * x : x;
    case Function::HardSigmoid: return unit(alpha * x + beta);
    case Function::Abs: return std::fabs(x);
    case Function::Neg: return -x;
    case Function::Exp: return std::exp(x);
    case Function::Log: return std::log(x);
    case Function::Sqrt: return std::sqrt(x);
    case Function::Reciprocal: return 1 / x;
    case Function::Sin: return std::sin(x);
    case Function::Cos: return std::cos(x);
    case Function::Erf: return std::erf(x);
    case Function::Floor: return std::floor(x);
    case Function::Ceil: return std::ceil(x);
    case Function::Round:  // half to even, whatever the thread's rounding mode is
      return std::fabs(x - std::trunc(x)) == 0.5 ? 2 * std::round(x / 2) : std::round(x);
    case Function::Sign: return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0));
    case Function::Softplus: return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
    case Function::Elu: return x < 0 ? alpha * std::expm1(x) : x;
    case Function::Not: return x == 0 ? 1 : 0;
    case Function::Atan: return std::atan(x);
    case Function::Affine: return alpha * x + beta;
    case Function::ThresholdedRelu: return x <= alpha ? 0 : x;
    case Function::ScaledTanh: return alpha * std::tanh(beta * x);
    case Function::Softsign: return x / (1 + std::fabs(x));
  }
}

/// The same, chosen at run time.
inline double function_value(const FunctionCall& call, double x) noexcept {
  const auto alpha = static_cast<double>(call.alpha), beta = static_cast<double>(call.beta);
  switch (call.function) {
#define RT_FUNCTION(Name, operands) \
  case Function::Name:              \
    return function_value<Function::Name>(x, alpha, beta);
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
  }
  return x;
}

}  // namespace librt
