// Which function a node, an epilogue or a gate of a recurrent cell applies, and its parameters.
//
// Knows: attributes. Must not know: formulas (function_value.h), kernels.
#pragma once

#include <optional>

#include "runtime/core/binary_function.h"
#include "runtime/core/function.h"
#include "runtime/graph/node_view.h"

namespace librt {

/// The function of the same name; Identity for operators that are none.
Function function_of(OpKind kind) noexcept;
/// Identity for None.
Function function_of(op::Activation activation) noexcept;
/// Identity for Default.
Function function_of(op::RecurrentActivation activation) noexcept;
/// The activation of an epilogue that applies the function, where there is one.
std::optional<op::Activation> activation_of(Function function) noexcept;

/// Identity for a node that is no function.
FunctionCall function_call(const Node& node) noexcept;
/// Identity for null.
FunctionCall function_call(const op::EpilogueAttributes* epilogue) noexcept;
/// For types wider than f32: f32's largest value as a bound of Clip means no bound, as the schema has f32
/// only.
FunctionCall with_open_bounds(FunctionCall call) noexcept;

/// The attribute that selects the other form of an operator: tanh_approximation of Gelu and GeluGrad,
/// truncated of Mod, left of BitShift; false for others.
bool has_other_form(const Node& node) noexcept;
/// The function of two elements that an operator, or its other form, computes; nullopt if none.
std::optional<BinaryFunction> binary_function(OpKind kind, bool other_form) noexcept;
inline std::optional<BinaryFunction> binary_function(const Node& node) noexcept {
  return binary_function(node.kind(), has_other_form(node));
}
/// The relation that an operator tests.
std::optional<CompareFunction> compare_function(OpKind kind) noexcept;

/// The operator that applies the function; Identity where there is none.
OpAttributes operator_of(const FunctionCall& call);

}  // namespace librt
