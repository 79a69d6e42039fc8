#include "runtime/model/meaning.h"

#include <set>
#include <string_view>

#include "runtime/ops/evaluate.h"

namespace librt {
namespace {

Status check_arity(size_t count, const ops::Arity& arity, std::string_view what) {
  if (count >= arity.least && (arity.most == ops::kUnbounded || count <= arity.most)) return {};
  if (arity.most == ops::kUnbounded)
    return invalid_model(count, " ", what, ", expected at least ", static_cast<int>(arity.least));
  return invalid_model(
      count, " ", what, ", expected ", static_cast<int>(arity.least),
      arity.least == arity.most ? std::string() : text(" to ", static_cast<int>(arity.most)));
}

bool agrees(const Value& stated, const TensorInfo& inferred) {
  if (stated.dtype != inferred.dtype || stated.rank() != inferred.shape.rank()) return false;
  for (int axis = 0; axis < stated.rank(); ++axis) {
    const Dim& dim = stated.dims[static_cast<size_t>(axis)];
    const int64_t extent = inferred.shape[axis];
    if (dim.is_known() && extent != ops::kUnknownExtent && dim.extent != extent) return false;
  }
  return true;
}

/// Runs the shape rule if everything it needs is in the file.
Status check_shapes(const Graph& graph, const Node& node, const ops::Page& page) {
  std::vector<Operand> operands(node.inputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Value& value = graph[node.inputs[i]];
    const bool shape_operand = i < 32 && (page.shape_operands >> i & 1u) != 0;
    if (!value.is_static() || (shape_operand && value.role != Role::Constant)) return {};
    operands[i] = {.present = true, .info = value.info()};
    static constexpr int64_t kEmpty = 0;  // an empty constant is known, too
    if (value.role == Role::Constant)
      operands[i].value = value.data.size == 0 ? &kEmpty : static_cast<const void*>(value.data.data);
  }
  std::vector<TensorInfo> inferred;
  if (Status status = page.infer({.node = node, .inputs = operands}, inferred); !status.ok())
    return {Code::InvalidModel, status.message()};
  if (inferred.size() != node.outputs.size())
    return invalid_model(node.outputs.size(), " outputs, expected ", inferred.size());
  for (size_t i = 0; i < inferred.size(); ++i) {
    const Value& stated = graph[node.outputs[i]];
    if (!agrees(stated, inferred[i]))
      return invalid_model("output ", i, " '", stated.name, "' is declared as ", name_of(stated.dtype),
                           stated.is_static() ? text(stated.info().shape) : text(" of rank ", stated.rank()),
                           ", its operator gives ", inferred[i]);
  }
  return {};
}

Status check_node(const Graph& graph, const Node& node) {
  const ops::Page* page = ops::page_of(node.kind());
  if (page == nullptr) return {};  // it is defined by its body
  RT_TRY(check_arity(node.inputs.size(), page->inputs, "inputs"));
  RT_TRY(check_arity(node.outputs.size(), page->outputs, "outputs"));
  for (size_t i = 0; i < page->inputs.least; ++i)
    if (node.inputs[i] == kNoValue && page->inputs.least == page->inputs.most)
      return invalid_model("input ", i, " is absent");
  if (page->composite && node.bodies.empty()) return invalid_model("a composite needs its body");
  return check_shapes(graph, node, *page);
}

Status check_graph(const Graph& graph) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    for (const Graph& body : node.bodies)
      RT_TRY(check_graph(body).in("node ", id, " '", node.name, "' (", op_name(node), "), body"));
    RT_TRY(check_node(graph, node).in("node ", id, " '", node.name, "' (", op_name(node), ")"));
  }
  return {};
}

Status check_names(const Graph& graph, const std::vector<ValueId>& ids, std::string_view what) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& name = graph[ids[i]].name;
    if (name.empty() || !names.insert(name).second)
      return invalid_model(what, " ", i, " '", name, "': the name must be unique and not empty");
  }
  return {};
}

Status check_entry(const Graph& graph) {
  RT_TRY(check_names(graph, graph.inputs, "input"));
  RT_TRY(check_names(graph, graph.outputs, "output"));
  return check_graph(graph);
}

}  // namespace

Status check_meaning(const ModelGraph& model) {
  for (const ModelGraph::Entry& entry : model.entries) {
    RT_TRY(check_entry(entry.graph).in("entry '", entry.name, "'"));
  }
  return {};
}

}  // namespace librt
