// Changes models the way a hostile author would, and keeps them valid, so that they get past the reader into
// planning and kernels.
//
// Knows: the graph, attributes by reflection, arities. Must not know: what an operator computes, files.
#pragma once

#include "runtime/graph/graph.h"
#include "tests/fuzz/random.h"

namespace librt::fuzz {

/// Changes attributes, shapes, types, constants, operands or the order of nodes in one to three places of one
/// entry; shapes that follow are inferred again. False, with the model unchanged, if no change was valid.
bool mutate(ModelGraph& model, Random& random);

/// Appends the nodes of an entry of `from` to an entry of `into`, with some of their inputs taken from there.
bool splice(ModelGraph& into, const ModelGraph& from, Random& random);

}  // namespace librt::fuzz
