// expand: gives every composite node its body, written by the operator's page.
//
// The body has the node's present inputs and its outputs; a backend without a kernel for the composite runs
// it instead. Its dims carry the outer graph's symbols; dimensions that have no name there get one here
// ("?0"), so that equal ones stay equal.
#include <map>

#include "runtime/ops/control.h"
#include "tools/compiler/graph_edit.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/pipeline.h"

namespace rt::compiler {
namespace {

constexpr int kMostNesting = 4;

Result<Graph> body_of(const Builder& outer, const Graph& graph, const Node& node,
                      const ops::CompilerPage& page, const std::vector<State>& states) {
  Graph body;
  body.name = node.name;
  body.symbols = graph.symbols;
  std::map<std::array<int64_t, kProbes>, int32_t> nameless;
  // Symbols come first, since a builder's probes follow from all of them.
  std::vector<std::vector<Dim>> dims;
  for (ValueId input : node.inputs) {
    dims.emplace_back();
    if (input == kNoValue) continue;
    dims.back() = graph[input].dims;
    for (size_t axis = 0; axis < dims.back().size(); ++axis) {
      Dim& dim = dims.back()[axis];
      if (dim.is_known() || dim.symbol >= 0) continue;
      const auto extent = [&](int probe) {
        return outer.probe(input, probe).info.shape[static_cast<int>(axis)];
      };
      const auto [entry, fresh] = nameless.try_emplace({extent(0), extent(1)}, 0);
      if (fresh) entry->second = body.symbol(text('?', nameless.size() - 1));
      dim.symbol = entry->second;
    }
  }
  Builder builder(body, &states);
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    inputs.push_back(input == kNoValue ? kNoValue : builder.input("", graph[input].dtype, dims[i]));
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
    RT_ASSIGN(Graph body, body_of(outer, graph, node, *page, states));
    RT_TRY(tidy(body));
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

}  // namespace rt::compiler
