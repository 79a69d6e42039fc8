// Finds the constraints that a node's shape rule puts on symbols of graph inputs: that a channel count is the
// weight's, that two lengths agree, that a batch is 1.
//
// Knows: how to try extents in place of symbols, fewest first. Must not know: shape rules, probes.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// A symbol of the graph, and the extent or other symbol that replaces it.
using SymbolChange = std::pair<int32_t, Dim>;

/// The changes that `fits` requires: of the smallest set under which it is true (up to four), those that an
/// extent of 1, by broadcasting, cannot replace. open: symbols that may change. dims: candidate replacements,
/// the likeliest first; an extent of 1 is tried last.
std::vector<SymbolChange> required_changes(std::span<const int32_t> open, std::vector<Dim> dims,
                                           const std::function<bool(std::span<const SymbolChange>)>& fits);

}  // namespace librt::compiler
