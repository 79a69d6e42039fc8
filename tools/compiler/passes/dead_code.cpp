// dead_code: drops nodes and values that neither an output nor a state update depends on.
#include "tools/compiler/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace rt::compiler {

Status dead_code(Graph& graph, const PassContext&) {
  return tidy(graph);
}

}  // namespace rt::compiler
