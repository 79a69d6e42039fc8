// Functions of two scalars on the device, in float or double, and comparisons. NaN stays NaN.
#pragma once

#include <cmath>

#include "kernels/common.cuh"
#include "runtime/core/binary_function.h"

namespace librt::cuda {

/// The derivative of Gelu or Silu. The square is bounded where 1 - t^2 is 0, so that their product is 0, too.
template <class F>
RT_DEVICE F slope_of(BinaryFunction function, F x) {
  if (function == BinaryFunction::SiluGrad) {
    const F s = F(1) / (F(1) + exp(-x));
    return s + x * s * (F(1) - s);
  }
  if (function == BinaryFunction::GeluGrad)
    return F(0.5) * (F(1) + std::erf(x * F(0.70710678118654752))) +
           x * (exp(F(-0.5) * x * x) * F(0.39894228040143268));
  const F scale = F(0.79788456080286536), cube = F(0.044715) * scale;
  const F square = x * x > F(1e30) ? F(1e30) : x * x;
  const F t = std::tanh(x * (square * cube + scale));
  return F(0.5) * (F(1) + t) + F(0.5) * x * (F(1) - t * t) * (square * (F(3) * cube) + scale);
}

template <class F>
RT_DEVICE F float_value(BinaryFunction function, F a, F b) {
  switch (function) {
    case BinaryFunction::Add: return a + b;
    case BinaryFunction::Sub: return a - b;
    case BinaryFunction::Mul: return a * b;
    case BinaryFunction::Div: return a / b;
    case BinaryFunction::Pow: return pow(a, b);
    case BinaryFunction::Minimum: return a < b || a != a ? a : b;
    case BinaryFunction::Maximum: return a > b || a != a ? a : b;
    case BinaryFunction::GeluGrad:
    case BinaryFunction::GeluTanhGrad:
    case BinaryFunction::SiluGrad: return a * slope_of(function, b);
    case BinaryFunction::ReluGrad: return b > F(0) ? a : F(0);
    default: break;
  }
  const F rest = fmod(a, b);
  if (function == BinaryFunction::ModTruncated) return rest;
  return rest != F(0) && ((rest < F(0)) != (b < F(0))) ? rest + b : rest;
}

/// Whether a (relation) b.
template <class T>
RT_DEVICE bool holds(CompareFunction relation, T a, T b) {
  switch (relation) {
    case CompareFunction::Equal: return a == b;
    case CompareFunction::Less: return a < b;
    case CompareFunction::LessOrEqual: return a <= b;
    case CompareFunction::Greater: return a > b;
    case CompareFunction::GreaterOrEqual: break;
  }
  return a >= b;
}

}  // namespace librt::cuda
