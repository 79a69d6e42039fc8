// expand: gives every composite node its body, written by the operator's page.
//
// The body has the node's present inputs and its outputs; a backend without a kernel for the composite runs
// it instead. Its dims carry the outer graph's symbols; dimensions that have no name there get one here
// ("?0"), so that equal ones stay equal.
#include <map>

#include "runtime/ops/control.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/shape/symbols.h"

namespace librt::compiler {
namespace {

constexpr int kMostNesting = 4;

Result<Graph> body_of(const Graph& graph, const Node& node, const ops::CompilerPage& page,
                      const std::vector<State>& states) {
  Graph body;
  body.name = node.name;
  Builder builder(body, &states);
  SymbolIndex names(body);
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue) {
      inputs.push_back(kNoValue);
      continue;
    }
    // Only the symbols that it needs: there may be as many composites as symbols.
    std::vector<Dim> dims = graph[input].dims;
    for (Dim& dim : dims)
      if (dim.symbol >= 0) dim.symbol = copy_symbol(graph, dim.symbol, body, names);
    inputs.push_back(builder.input("", graph[input].dtype, std::move(dims)));
  }
  for (ValueId output : page.body(builder, node, inputs)) builder.output(output);
  RT_TRY(Status(builder.status()).in(describe(node)));
  if (body.outputs.size() != node.outputs.size())
    return internal_error(describe(node), ": its body has ", body.outputs.size(), " outputs");
  return body;
}

Status expand_graph(Graph& graph, const std::vector<State>& states, int depth) {
  if (depth > kMostNesting)
    return internal_error("graph '", graph.name, "': composites within composites do not end");
  const Builder outer(graph, &states);
  RT_TRY(Status(outer.status()));
  for (Node& node : graph.nodes) {
    if (ops::is_control(node.kind()))
      for (Graph& body : node.bodies) RT_TRY(expand_graph(body, states, depth));
    const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
    if (page == nullptr || page->body == nullptr || !node.bodies.empty()) continue;
    RT_ASSIGN(Graph body, body_of(graph, node, *page, states));
    RT_TRY(tidy(body));
    drop_unused_symbols(body);
    RT_TRY(expand_graph(body, states, depth + 1));
    node.bodies.push_back(std::move(body));
  }
  return {};
}

}  // namespace

Status expand_composites(Graph& graph, const std::vector<State>& states) {
  return expand_graph(graph, states, 0);
}

Status expand(Graph& graph, const PassContext& context) {
  return expand_composites(graph, context.states);
}

}  // namespace librt::compiler
