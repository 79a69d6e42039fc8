// Shapes of a graph's inputs: declared against given shapes, and which inputs determine shapes.
//
// Knows: symbols, bounds, shape operands. Must not know: devices, memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt {

/// "f32[batch,3,224,224]"; "?" for an unnamed dimension.
std::string declared_text(const Graph& graph, const Value& value);

/// Checks dtype, rank, known extents, symbols (consistent, within their bounds). Reports all mismatches at
/// once.
Status check_inputs(const Graph& graph, std::span<const TensorInfo> inputs);

/// For each value of the graph: whether its bytes determine shapes in the graph.
std::vector<uint8_t> shape_deciding(const Graph& graph);

/// For each input of the graph: whether its value, not only its shape, determines a shape in the graph (it
/// is, or computes, a shape operand). Such values must be known while planning.
std::vector<uint8_t> shape_inputs(const Graph& graph);

/// Concrete infos for an estimate before any input is known: dynamic extents become their bound, else 1.
std::vector<TensorInfo> assumed_inputs(const Graph& graph);

}  // namespace librt
