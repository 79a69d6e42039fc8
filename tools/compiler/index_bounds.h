// Which integers an input may hold, as far as the graph tells: made-up inputs (random data for a comparison
// or a measurement) must index what is there.
//
// Knows: which operands are indices. Must not know: data, files.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/graph/graph.h"

namespace rt::compiler {

/// For each integer input that indexes an axis of known extent, the smallest such extent: of a table that
/// Gather or GatherElements reads, also after casts and movements, or the number of classes when the input is
/// `labels` of a train_step. Inputs without such a use are absent.
std::map<std::string, int64_t> index_bounds(const Graph& graph);

}  // namespace rt::compiler
