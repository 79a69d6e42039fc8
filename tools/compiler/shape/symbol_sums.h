// Symbols whose names say that they are sums of others: exporters write "past_sequence_length + 1".
//
// Knows: these names. Must not know: nodes.
#pragma once

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// Gives each symbol named as a sum of others ("past + length", or "total_x" for "past_x" + "x") that sum as
/// its definition; whether there was a new one.
bool define_sums(Graph& graph);

}  // namespace librt::compiler
