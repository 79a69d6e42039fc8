// Cuts a graph where shapes, or which nodes run at all, depend on data.
//
// Knows: which operators run on the host and which values follow from data. Must not know: devices, plans.
//
// The graph becomes a sequence of segments and host nodes. A segment is a graph of its own whose shapes all
// follow from its inputs; what it takes from and gives to others are its inputs and outputs. On the host run
// control flow, operators whose results' extents depend on data, and operators that librt has a value for
// whose shape operand is computed from data. Where librt has none (Resize), the operand ends a segment and is
// an input that decides over shapes of the next: one plan for each of its values.
#pragma once

#include <memory>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt {

struct CutStep {
  const Node* node = nullptr;            ///< on the host; of the graph that was cut
  std::unique_ptr<Graph> segment;        ///< else
  std::vector<ValueId> inputs, outputs;  ///< values of the whole graph, in the segment's order
};

enum class GraphPlace : uint8_t {
  Entry,  ///< small integer inputs are taken for shapes: they are read while a plan is made
  Body,   ///< inputs change from run to run
};

/// Whether the graph has anything to cut at.
bool needs_cut(const Graph& graph);
/// In the order in which they run.
std::vector<CutStep> cut_graph(const Graph& graph, GraphPlace place);

}  // namespace rt
