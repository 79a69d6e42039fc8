// Which nodes compute in 16 bits, and what that does to numbers.
//
// Knows: the pages' word on 16-bit arithmetic, patterns of names. Must not know: how a graph is rewritten
// (passes/precision.cpp), files, devices.
#pragma once

#include <vector>

#include "tools/compiler/pass.h"

namespace rt::compiler {

/// What each node computes in: context.dtype or F32. Products, what reads large constants, and from there on
/// forwards all nodes that 16 bits do not spoil and no pattern keeps. So no Cast lies between them. What
/// comes before the first product keeps f32: gradients of a loss, say, which only its scale brings into f16's
/// range.
std::vector<DType> node_types(const Graph& graph, const PassContext& context);

/// The f32 graph with everything rounded that these types round: operands and results of nodes that are not
/// in F32. So every backend shows what 16 bits do, also one that would compute such nodes in f32.
Result<Graph> rounded(const Graph& graph, const std::vector<State>& states, const std::vector<DType>& types);

}  // namespace rt::compiler
