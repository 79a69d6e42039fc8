// Structural checks of a graph: what every reader of a graph may rely on.
//
// Knows: ids, roles, shapes, order, bodies. Must not know: what an operator means (arity and shape rules are
// the reader's and the builder's business), files, devices.
//
// A graph that passes has: ids in range; values with a valid dtype, rank <= kMaxRank, element counts that
// fit; nodes in topological order with every value produced at most once and before its use; exactly the
// values of role Input as graph inputs; constants with bytes of their exact size; bodies with the interface
// of their node; and state updates of the state's type and shape. Values that nothing produces and nothing
// uses are allowed: passes leave them behind.
#pragma once

#include <cstddef>

#include "runtime/graph/graph.h"

namespace rt {

/// Bodies within bodies.
inline constexpr int kMaxBodyDepth = 16;

/// One graph, to be run as an entry; state_count is ModelGraph::states.size(). Code::InvalidModel with up to
/// a few problems in one message.
Status verify(const Graph& graph, size_t state_count);

/// All entries, the states, and that entries agree with the states that they refer to.
Status verify(const ModelGraph& model);

}  // namespace rt
