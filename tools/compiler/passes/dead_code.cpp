// dead_code: drops nodes and values that neither an output nor a state update depends on.
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {

Status dead_code(Graph& graph, const PassContext&) {
  return tidy(graph);
}

}  // namespace librt::compiler
