// branches: an If whose condition does not depend on data is replaced by the nodes of its branch.
#include "runtime/core/element.h"
#include "tools/compiler/edit/control.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

/// Whether the branch states no extent that its operands outside leave open: the run checks that, the nodes
/// of the branch alone would not.
bool states_no_more(const Graph& body, GraphEdit& edit, std::span<const ValueId> operands) {
  for (size_t i = 0; i < body.inputs.size() && i < operands.size(); ++i) {
    const std::vector<Dim>&inside = body[body.inputs[i]].dims, &outside = edit.value(operands[i]).dims;
    for (size_t axis = 0; axis < inside.size() && axis < outside.size(); ++axis)
      if (inside[axis].is_known() && inside[axis].extent != outside[axis].extent) return false;
  }
  return true;
}

}  // namespace

Status branches(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  RT_TRY(Status(edit.status()));
  for (NodeId id = 0; id < edit.node_count(); ++id) {
    if (!edit.is_alive(id, OpKind::If)) continue;
    const auto condition = edit.builder().known_value(edit.node(id).inputs[0]);
    if (!condition) continue;
    const Node node = edit.node(id);
    const bool taken = load_element(condition->data, condition->info.dtype, 0) != 0;
    const Graph& body = node.bodies[taken ? 0 : 1];
    if (!body.refusal.empty()) continue;  // the run reports why
    const auto operands = std::span(node.inputs).subspan(1);
    if (!states_no_more(body, edit, operands)) continue;
    const std::vector<ValueId> results = BodyWriter(edit.builder(), body).write(operands, node.name + "/");
    for (size_t i = 0; i < results.size(); ++i) edit.replace(node.outputs[i], results[i]);
  }
  return edit.finish();
}

}  // namespace librt::compiler
