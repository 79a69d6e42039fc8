// Which nodes compute in 16 bits, and the rounding that causes.
//
// Knows: how the pages classify operators for 16-bit arithmetic, patterns of names. Must not know: how a
// graph is rewritten (passes/precision.cpp), files, devices.
#pragma once

#include <functional>
#include <vector>

#include "tools/compiler/pass.h"

namespace librt::compiler {

class Builder;

/// The type that each node computes in: context.dtype or F32. In 16 bits: GEMM-like operators, readers of
/// large constants, and all nodes downstream of these that are not precision-sensitive and that no pattern
/// keeps, so that no Cast is needed between them. What comes before the first of these keeps f32: gradients
/// of a loss, for example, which only the loss scale brings into f16's range. In f16, squares keep f32 too,
/// and divisions by what a small constant keeps from zero.
std::vector<DType> node_types(const Graph& graph, const PassContext& context);

/// Of the graph's f32 values, those that may be finite and beyond what the 16-bit type holds: constants, and
/// what element-wise operators and data movement make of them. Mostly masks (-3.4e38), where an infinity
/// gives NaN: a row of scores that are all masked has no largest one.
std::vector<bool> exceeding(const Graph& graph, DType dtype);
/// Casts an f32 value to the 16-bit type, after a Clip to the type's finite values if it is `exceeding`.
ValueId narrow(Builder& builder, ValueId value, DType dtype, bool exceeding);

/// The f32 graph with the rounding of these types made explicit: operands and results of nodes that are not
/// in F32. So every backend shows the effect of 16 bits, even one that would compute such nodes in f32.
/// of_body: the types of the nodes of a branch or a loop's body.
Result<Graph> rounded(const Graph& graph, const std::vector<State>& states, const std::vector<DType>& types,
                      const std::function<std::vector<DType>(const Graph& body)>& of_body);

}  // namespace librt::compiler
