// Nodes and integers that are added to an ONNX graph before its import.
//
// Knows: protobuf. Must not know: what they are added for. Private to the importer's folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {

/// A node with one input and one result, named after the latter; it may be anywhere in the graph.
inline rt_onnx::NodeProto& add_node(rt_onnx::GraphProto& graph, const char* op, const std::string& from,
                                    const std::string& to) {
  auto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(to);
  node.add_input(from);
  node.add_output(to);
  return node;
}

/// An initializer: a vector of int64.
inline void add_integers(rt_onnx::GraphProto& graph, const std::string& name,
                         const std::vector<int64_t>& values) {
  auto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(7);  // int64
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
}

}  // namespace librt::onnx
