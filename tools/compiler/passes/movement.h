// Permutations and reshapes, as several passes need them.
#pragma once

#include <optional>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::compiler {

bool is_identity(const std::vector<int64_t>& permutation);
/// Transpose(Transpose(x, first), second) = Transpose(x, compose(first, second)).
std::vector<int64_t> compose(const std::vector<int64_t>& first, const std::vector<int64_t>& second);
std::vector<int64_t> inverse(const std::vector<int64_t>& permutation);
/// Transposing x only moves axes of extent 1, so that no element moves in memory.
bool keeps_order(const Value& x, const std::vector<int64_t>& permutation);
/// The constant shape operand that reshapes to y's dims: extents, and -1 for one that is not static. nullopt
/// when there are two of these, or when an extent is 0 beside one.
std::optional<std::vector<int64_t>> reshape_target(const Value& y);

}  // namespace rt::compiler
