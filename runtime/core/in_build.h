// Which element types and functions this build computes: all of them, unless it was made for some models
// (-DRT_TRIM=FILE, cmake/Trim.cmake).
//
// Knows: the list that the build generated. Must not know: why something is in it.
#pragma once

#include "runtime/core/binary_function.h"
#include "runtime/core/dtype.h"
#include "runtime/core/function.h"

namespace librt {

namespace build {
#include "runtime/core/build_parts.inc"  // generated: kTrimmed, kTypes, operators::Name for every operator
}  // namespace build

constexpr bool in_build(DType dtype) noexcept {
  return !build::kTrimmed || build::kTypes.contains(dtype);
}

/// Whether a type with elements of so many bytes is in the build.
constexpr bool size_in_build(size_t bytes) noexcept {
  for (int i = 0; i < kDTypeCount; ++i)
    if (const auto dtype = static_cast<DType>(i); size_of(dtype) == bytes && in_build(dtype)) return true;
  return false;
}

/// Whether an operator of the function's name is in the build. Functions without one, which are attributes of
/// operators, always are.
constexpr bool in_build(Function function) noexcept {
  namespace operators = build::operators;
#define RT_FUNCTION_OF_Floats(Name) operators::Name
#define RT_FUNCTION_OF_Numbers(Name) operators::Name
#define RT_FUNCTION_OF_Booleans(Name) operators::Name
#define RT_FUNCTION_OF_None(Name) true
#define RT_FUNCTION(Name, operands) \
  if (function == Function::Name) return RT_FUNCTION_OF_##operands(Name);
#include "runtime/core/function_list.inc"
#undef RT_FUNCTION
#undef RT_FUNCTION_OF_Floats
#undef RT_FUNCTION_OF_Numbers
#undef RT_FUNCTION_OF_Booleans
#undef RT_FUNCTION_OF_None
  return true;
}

/// Whether an operator that computes the function is in the build. Add and Div are parts of others: of
/// epilogues and of quantization.
constexpr bool in_build(BinaryFunction function) noexcept {
  namespace operators = build::operators;
  switch (function) {
    case BinaryFunction::Sub: return operators::Sub;
    case BinaryFunction::Mul: return operators::Mul;
    case BinaryFunction::Pow: return operators::Pow;
    case BinaryFunction::Minimum: return operators::Minimum || operators::And;  // of booleans as floats
    case BinaryFunction::Maximum: return operators::Maximum || operators::Or;
    case BinaryFunction::Mod:
    case BinaryFunction::ModTruncated: return operators::Mod;
    case BinaryFunction::GeluGrad:
    case BinaryFunction::GeluTanhGrad: return operators::GeluGrad;
    case BinaryFunction::SiluGrad: return operators::SiluGrad;
    case BinaryFunction::ReluGrad: return operators::ReluGrad;
    default: return true;
  }
}

constexpr bool in_build(CompareFunction function) noexcept {
#define RT_COMPARE_FUNCTION(Name) \
  if (function == CompareFunction::Name) return build::operators::Name;
#include "runtime/core/binary_function_list.inc"
  return true;
}

}  // namespace librt
