// Elementary functions of one scalar, by enum. Plain C++.
#pragma once

#include <cstdint>

namespace librt::cuda {

/// The first ones match op::Activation, for epilogues.
enum class Function : uint8_t {
  Identity,
  Relu,
  Clip,
  Sigmoid,
  Tanh,
  HardSwish,
  Silu,
  Gelu,
  GeluTanh,
  LeakyRelu,
  HardSigmoid,
  Abs,
  Neg,
  Exp,
  Log,
  Sqrt,
  Reciprocal,
  Sin,
  Cos,
  Erf,
  Floor,
  Ceil,
  Round,
  Sign,
  Softplus,
  Elu,
  Atan,
  Not,
};

/// A function with its attributes: Clip's minimum and maximum; LeakyRelu's, Elu's, HardSigmoid's slope;
/// HardSigmoid's offset.
struct FunctionCall {
  Function function = Function::Identity;
  double alpha = 0;
  double beta = 0;
};

}  // namespace librt::cuda
