// The functions of one element that operators, epilogues and recurrent cells apply, as function_list.inc
// names them.
//
// Knows: names and numbers. Must not know: operators, formulas. Plain C++ without inline functions, because
// CUDA kernels and the SIMD loops include it.
#pragma once

#include <cstdint>

namespace librt {

enum class Function : uint8_t {
#define RT_FUNCTION(Name, operands) Name,
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
};

inline constexpr int kFunctionCount = 0
#define RT_FUNCTION(Name, operands) +1
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
    ;

/// A function with its parameters. alpha: Clip's minimum; the slope of LeakyRelu, Elu, HardSigmoid and
/// Affine; the threshold of ThresholdedRelu; ScaledTanh's factor. beta: Clip's maximum; the offset of
/// HardSigmoid and Affine; ScaledTanh's factor of x.
struct FunctionCall {
  Function function = Function::Identity;
  float alpha = 0;
  float beta = 0;
};

}  // namespace librt
