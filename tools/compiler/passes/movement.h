// Helpers for permutations and reshapes, shared by several passes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {

op::TransposeAttributes transpose_by(std::vector<int64_t> permutation);
bool is_identity(const std::vector<int64_t>& permutation);
/// Transpose(Transpose(x, first), second) = Transpose(x, compose(first, second)).
std::vector<int64_t> compose(const std::vector<int64_t>& first, const std::vector<int64_t>& second);
std::vector<int64_t> inverse(const std::vector<int64_t>& permutation);
/// Whether transposing x (with leading axes of extent 1 added up to the permutation's rank) only moves axes
/// of extent 1, so that no element moves in memory.
bool keeps_order(const Value& x, const std::vector<int64_t>& permutation);
/// The constant shape operand that reshapes to y's dims: extents, and -1 for a dynamic one. nullopt when
/// there are two of these, or one together with an extent of 0.
std::optional<std::vector<int64_t>> reshape_target(const Value& y);

/// Transpose after Transpose becomes one or none; one that moves nothing becomes a Reshape.
void simplify_transpose(GraphEdit& edit, NodeId id);
/// Extents [first, last) of a value's shape.
struct Extents {
  ValueId source;
  size_t first, last;
};
/// x reshaped to these extents one after the other; a source of kNoValue gives ones.
ValueId reshape_to(GraphEdit& edit, ValueId x, const std::vector<Extents>& shape);

/// A Transpose's permutation; an empty one is resolved to the reversal.
std::vector<int64_t> permutation_of(GraphEdit& edit, const Node& transpose);
/// x transposed; composed with the Transpose that produces x, if any.
ValueId permuted(GraphEdit& edit, ValueId x, std::vector<int64_t> permutation);

/// Drops a Reshape that does nothing, merges two, and gives it a constant shape operand where that is
/// possible.
void simplify_reshape(GraphEdit& edit, NodeId id);

/// For a node `old` that becomes an operator followed by a movement: the operator keeps the name, the
/// movement gets it with a suffix. Call it after `movement` has replaced the node's result.
struct Names {
  std::string node, value;
};
Names names_of(GraphEdit& edit, NodeId old);
void keep_names(GraphEdit& edit, const Names& names, ValueId moved, ValueId movement);

}  // namespace librt::compiler
