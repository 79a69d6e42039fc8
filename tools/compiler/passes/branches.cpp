// branches: an If whose condition does not depend on data is replaced by the nodes of its branch.
#include "runtime/core/element.h"
#include "tools/compiler/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace rt::compiler {
namespace {

/// Emits the body's nodes; the values that its outputs became.
std::vector<ValueId> write_body(Builder& builder, const Graph& body, std::span<const ValueId> inputs,
                                const std::string& prefix) {
  std::vector<ValueId> map(body.values.size(), kNoValue);
  for (size_t i = 0; i < inputs.size(); ++i) map[body.inputs[i]] = inputs[i];
  for (ValueId id = 0; id < body.values.size(); ++id) {
    const Value& value = body[id];
    if (value.role == Role::Constant) map[id] = builder.constant(value.info(), value.data);
    if (value.role == Role::State) map[id] = builder.state(value.name, value.state, value.info());
    if (map[id] == kNoValue || value.role == Role::Input) continue;
    builder.graph()[map[id]].name = value.name;
    builder.graph()[map[id]].quantization = value.quantization;
  }
  for (const Node& node : body.nodes) {
    Node copy = node;
    copy.name = prefix + node.name;
    for (ValueId& input : copy.inputs)
      if (input != kNoValue) input = map[input];
    const std::vector<ValueId> outputs = builder.emit_node(std::move(copy));
    if (!builder.status().ok()) return {};
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) map[node.outputs[i]] = outputs[i];
  }
  std::vector<ValueId> outputs;
  for (const ValueId output : body.outputs) outputs.push_back(map[output]);
  return outputs;
}

}  // namespace

Status branches(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states);
  RT_TRY(Status(edit.status()));
  for (NodeId id = 0; id < edit.node_count(); ++id) {
    if (!edit.is_alive(id, OpKind::If)) continue;
    const auto condition = edit.builder().known_value(edit.node(id).inputs[0]);
    if (!condition) continue;
    const Node node = edit.node(id);
    const bool taken = load_element(condition->data, condition->info.dtype, 0) != 0;
    const Graph& body = node.bodies[taken ? 0 : 1];
    const std::vector<ValueId> results =
        write_body(edit.builder(), body, std::span(node.inputs).subspan(1), node.name + "/");
    for (size_t i = 0; i < results.size(); ++i) edit.replace(node.outputs[i], results[i]);
  }
  return edit.finish();
}

}  // namespace rt::compiler
