// Cuts a graph where shapes, or which nodes run at all, depend on data.
//
// Knows: which operators run on the host and which values depend on data. Must not know: devices, plans.
//
// The graph becomes a sequence of segments and host nodes. A segment is a separate graph whose shapes all
// follow from its inputs; values that cross segments are its inputs and outputs. Run on the host: control
// flow, operators whose output extents depend on data, and operators with a host implementation whose shape
// operand is computed from data. Where there is no host implementation (Resize), the operand ends a segment
// and becomes an input of the next that determines shapes: one plan for each of its values.
#pragma once

#include <memory>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt {

struct PartitionStep {
  const Node* node = nullptr;            ///< a host node, of the graph that was cut
  std::unique_ptr<Graph> segment;        ///< a segment otherwise
  std::vector<ValueId> inputs, outputs;  ///< values of the whole graph, in the segment's order
};

enum class GraphKind : uint8_t {
  Entry,  ///< small integer inputs are taken for shapes: they are read while planning
  Body,   ///< inputs change from run to run
};

/// Whether the graph must be cut.
bool needs_partition(const Graph& graph);
/// In execution order.
std::vector<PartitionStep> partition_graph(const Graph& graph, GraphKind graph_kind);

}  // namespace librt
