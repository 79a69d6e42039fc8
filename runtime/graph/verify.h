// Structural checks of a graph: the invariants of every pass and every file.
//
// Knows: ids, roles, order, dims. Must not know: what an operator means (the pages check operands and
// attributes).
#pragma once

#include "runtime/graph/graph.h"

namespace librt {

/// Bodies within bodies.
inline constexpr int kMaxBodyDepth = 8;

/// Topological order, one producer for each value, ids in range, roles and their data, ranks, symbols,
/// quantization, state updates, bodies. states: the model's, or null when they are not known (then only their
/// presence is not checked). The message lists all problems found, up to a dozen, each naming the graph, node
/// or value.
Status verify(const Graph& graph, const std::vector<State>* states = nullptr);

/// The states themselves, and every entry against them; entry names are distinct.
Status verify(const ModelGraph& model);

}  // namespace librt
