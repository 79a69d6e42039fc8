// The functions of two elements that operators apply, as binary_function_list.inc names them.
//
// Knows: names and numbers. Must not know: operators, formulas. Plain C++ without inline functions, because
// CUDA kernels and the SIMD loops include it.
#pragma once

#include <cstdint>

namespace librt {

/// y = f(a, b)
enum class BinaryFunction : uint8_t {
#define RT_BINARY_FUNCTION(Name) Name,
#include "runtime/core/binary_function_list.inc"
};

/// y = a (relation) b, a bool.
enum class CompareFunction : uint8_t {
#define RT_COMPARE_FUNCTION(Name) Name,
#include "runtime/core/binary_function_list.inc"
};

inline constexpr int kBinaryFunctionCount = 0
#define RT_BINARY_FUNCTION(Name) +1
#include "runtime/core/binary_function_list.inc"
    ;
inline constexpr int kCompareFunctionCount = 0
#define RT_COMPARE_FUNCTION(Name) +1
#include "runtime/core/binary_function_list.inc"
    ;

}  // namespace librt
