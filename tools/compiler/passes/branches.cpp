// branches: an If whose condition does not depend on data is replaced by the nodes of its branch.
#include "runtime/core/element.h"
#include "tools/compiler/edit/control.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {

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
    const std::vector<ValueId> results =
        BodyWriter(edit.builder(), body).write(std::span(node.inputs).subspan(1), node.name + "/");
    for (size_t i = 0; i < results.size(); ++i) edit.replace(node.outputs[i], results[i]);
  }
  return edit.finish();
}

}  // namespace librt::compiler
