// Topological order of the nodes of an ONNX graph.
//
// Knows: names, producers, what the graphs inside a node read from outside. Must not know: operators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {

using NodeList = google::protobuf::RepeatedPtrField<rt_onnx::NodeProto>;

/// "node 'conv1' (Conv)", or by its position where it has no name.
std::string describe(const rt_onnx::NodeProto& node, int index);

/// Calls visit(name) for each value that a graph inside a node reads from the graphs around it. An If may
/// give its results the names that they have in its branches: a name that a graph gives to a value of its own
/// is not read from outside.
void each_outer_name(const rt_onnx::GraphProto& body, const std::function<void(const std::string&)>& visit);

/// The file's order where it is already topological, else one that is. An error for names that two nodes
/// produce (all of them) and for cycles (naming the nodes on one). Names that no node produces are ignored.
Result<std::vector<int>> topological_order(const NodeList& nodes);

}  // namespace librt::onnx
