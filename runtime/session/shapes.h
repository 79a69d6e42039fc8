// Shapes of a graph's inputs: what was declared against what was given, and which inputs decide over shapes.
//
// Knows: symbols, bounds, shape operands. Must not know: devices, memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt {

/// "f32[batch,3,224,224]"; "?" for a dimension without name.
std::string declared_text(const Graph& graph, const Value& value);

/// Checks dtype, rank, known extents, symbols (equal everywhere, within their bound). All mismatches at once.
Status check_inputs(const Graph& graph, std::span<const TensorInfo> inputs);

/// For each input of the graph: its value, not only its shape, decides over a shape inside (it is, or
/// computes, a shape operand). Such values must be known while planning.
std::vector<uint8_t> shape_inputs(const Graph& graph);

/// Concrete infos for an estimate before any input is known: unknown extents become their bound, else 1.
std::vector<TensorInfo> assumed_inputs(const Graph& graph);

}  // namespace rt
