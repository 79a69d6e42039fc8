// Permutations and reshapes, as several passes need them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/compiler/graph_edit.h"

namespace rt::compiler {

op::TransposeAttributes transpose_by(std::vector<int64_t> permutation);
bool is_identity(const std::vector<int64_t>& permutation);
/// Transpose(Transpose(x, first), second) = Transpose(x, compose(first, second)).
std::vector<int64_t> compose(const std::vector<int64_t>& first, const std::vector<int64_t>& second);
std::vector<int64_t> inverse(const std::vector<int64_t>& permutation);
/// Transposing x, with axes of extent 1 in front as far as it has fewer, only moves axes of extent 1, so that
/// no element moves in memory.
bool keeps_order(const Value& x, const std::vector<int64_t>& permutation);
/// The constant shape operand that reshapes to y's dims: extents, and -1 for one that is not static. nullopt
/// when there are two of these, or when an extent is 0 beside one.
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

/// A Transpose's permutation, also where an empty one stands for the reversal.
std::vector<int64_t> permutation_of(GraphEdit& edit, const Node& transpose);
/// x transposed; a Transpose that made x is taken into account.
ValueId permuted(GraphEdit& edit, ValueId x, std::vector<int64_t> permutation);

/// Drops a Reshape that does nothing, joins two, and gives it a constant shape operand where that is
/// possible.
void simplify_reshape(GraphEdit& edit, NodeId id);

/// Where node `old` becomes an operator and a movement after it: the operator keeps the name, the movement
/// says what it follows. Call it after `movement` has replaced the node's result.
struct Names {
  std::string node, value;
};
Names names_of(GraphEdit& edit, NodeId old);
void keep_names(GraphEdit& edit, const Names& names, ValueId moved, ValueId movement);

}  // namespace rt::compiler
