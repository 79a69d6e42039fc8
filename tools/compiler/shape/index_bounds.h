// Bounds of integer inputs that are used as indices, as far as the graph determines them: random inputs (for
// a comparison or a benchmark) must index existing elements.
//
// Knows: which operands are indices. Must not know: data, files.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// For each integer input that indexes an axis of known extent, the smallest such extent: of a table that
/// Gather or GatherElements reads, also after casts and movements, or the number of classes when the input is
/// `labels` of a train_step. Inputs without such a use are absent.
std::map<std::string, int64_t> index_bounds(const Graph& graph);

}  // namespace librt::compiler
