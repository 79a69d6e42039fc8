// Ids of the elementary functions in shaders/functions.glsl; the first ones are op::Activation's.
#pragma once

#include <cstdint>

namespace librt::vulkan {

enum class Function : uint32_t {
  Identity = 0,
  Relu = 1,
  Clip = 2,
  Sigmoid = 3,
  Tanh = 4,
  HardSwish = 5,
  Silu = 6,
  Gelu = 7,
  GeluTanh = 8,
  LeakyRelu = 9,
  HardSigmoid = 10,
  Abs = 11,
  Neg = 12,
  Exp = 13,
  Log = 14,
  Sqrt = 15,
  Reciprocal = 16,
  Sin = 17,
  Cos = 18,
  Erf = 19,
  Floor = 20,
  Ceil = 21,
  Round = 22,
  Sign = 23,
  Softplus = 24,
  Elu = 25,
  Not = 26,
  Atan = 27,
};

}  // namespace librt::vulkan
