// Shared by calibration and quantization-aware training: which Conv and MatMul nodes are quantizable, and how
// nodes are put into a graph.
//
// Knows: Conv and MatMul with constant weights. Must not know: scales, data, training.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/compiler/quantize/calibrate.h"

namespace librt::compiler {

inline bool is_real_constant(const Graph& graph, ValueId id) {
  return graph[id].role == Role::Constant && graph[id].dtype == DType::F32;
}

inline const std::unique_ptr<op::EpilogueAttributes>& epilogue_of(const Node& node) {
  return node.kind() == OpKind::Conv ? node.as<op::ConvAttributes>().epilogue
                                     : node.as<op::MatMulAttributes>().epilogue;
}

/// An f32 Conv or MatMul whose weight is constant according to is_constant(value).
template <class IsConstant>
bool is_matmul_or_conv(const Graph& graph, const Node& node, const IsConstant& is_constant) {
  if (node.kind() != OpKind::Conv && node.kind() != OpKind::MatMul) return false;
  if (!is_constant(node.inputs[1]) || is_constant(node.inputs[0])) return false;
  if (graph[node.inputs[0]].dtype != DType::F32 || graph[node.inputs[1]].dtype != DType::F32) return false;
  const auto& epilogue = epilogue_of(node);
  if (epilogue != nullptr && epilogue->has_residual) return false;
  if (epilogue != nullptr && epilogue->has_bias && !is_real_constant(graph, node.inputs[2])) return false;
  if (node.kind() == OpKind::Conv) return true;
  return graph[node.inputs[1]].rank() == 2 && graph[node.inputs[0]].rank() >= 2 &&
         !node.as<op::MatMulAttributes>().transpose_a;
}

inline bool is_matmul_or_conv(const Graph& graph, const Node& node) {
  return is_matmul_or_conv(graph, node, [&](ValueId id) { return graph[id].role == Role::Constant; });
}

/// The axis of the weight that holds the result's channels.
inline int64_t weight_axis(const Node& node) {
  return node.kind() == OpKind::Conv || node.as<op::MatMulAttributes>().transpose_b ? 0 : 1;
}

/// For each value whether it depends on constants alone.
std::vector<bool> constant_values(const Graph& graph);

/// The source of a value before operators that only select or move elements.
ValueId before_moves(const Graph& graph, const std::vector<std::optional<NodeId>>& producers, ValueId value);

inline std::string name_of_node(const Node& node, NodeId id) {
  return node.name.empty() ? text("node", id) : node.name;
}

/// Appends nodes to a graph whose values it shares.
class NodeWriter {
 public:
  explicit NodeWriter(Graph& graph) : graph_(graph) {}

  template <class Attributes>
  ValueId node(Attributes attributes, std::vector<ValueId> inputs, const std::string& name, DType dtype,
               std::vector<Dim> dims) {
    Node node;
    node.op = make_op(std::move(attributes));
    node.name = name;
    node.inputs = std::move(inputs);
    Value value;
    value.name = name;
    value.dtype = dtype;
    value.dims = std::move(dims);
    node.outputs = {graph_.add_value(std::move(value))};
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().outputs[0];
  }
  ValueId constant(const std::string& name, const TensorInfo& info, const void* data) {
    return graph_.add_constant(name, info, Blob::copy_of(data, info.bytes()));
  }

 protected:
  Graph& graph_;
};

/// Rewrites the chosen Conv and MatMul nodes: product(node, id, its original first operand) changes the node
/// and may append others before it; through(value), if it is not kNoValue, replaces the value for all later
/// nodes. Outputs of the graph stay.
template <class Rewrite, class Through>
void rewrite_matmuls(Graph& graph, const QuantizationChoice& choice, const Rewrite& rewrite,
                     const Through& through) {
  std::vector<Node> nodes;
  std::swap(nodes, graph.nodes);
  std::map<ValueId, ValueId> replaced;
  const auto look_at = [&](ValueId value) {
    if (const ValueId other = through(value); other != kNoValue) replaced[value] = other;
  };
  for (const ValueId input : graph.inputs) look_at(input);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    Node& node = nodes[id];
    const ValueId data = node.inputs.empty() ? kNoValue : node.inputs[0];
    for (ValueId& input : node.inputs)
      if (const auto other = replaced.find(input); other != replaced.end()) input = other->second;
    if (std::binary_search(choice.matmuls.begin(), choice.matmuls.end(), id)) rewrite(node, id, data);
    const std::vector<ValueId> outputs = node.outputs;
    graph.nodes.push_back(std::move(node));
    for (const ValueId output : outputs)
      if (output != kNoValue) look_at(output);
  }
}

}  // namespace librt::compiler
