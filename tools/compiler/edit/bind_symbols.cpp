// Changes to a whole model that a user requests: symbols bound to extents (`--dim batch=8`), states frozen
// into constants.
#include <algorithm>

#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/shape/symbols.h"

namespace librt::compiler {
namespace {

/// Whether the extent is within the symbol's bound, in the graph and its bodies.
Status check_bound(const Graph& graph, std::string_view name, int64_t extent) {
  for (const Node& node : graph.nodes)
    if (ops::is_control(node.kind()))
      for (const Graph& body : node.bodies) RT_TRY(check_bound(body, name, extent));
  for (const Symbol& symbol : graph.symbols)
    if (symbol.name == name && symbol.bound > 0 && extent > symbol.bound)
      return invalid_argument("dimension '", name, "': ", extent, " is above its bound ", symbol.bound);
  return {};
}

/// Infers every value again with the new knowledge, bodies first.
Status annotate_again(Graph& graph, const std::vector<State>& states) {
  for (Node& node : graph.nodes)
    if (ops::is_control(node.kind()))
      for (Graph& body : node.bodies) RT_TRY(annotate_again(body, states));
  const Builder builder(graph, &states);
  return builder.status();
}

std::string names_of_symbols(const ModelGraph& model) {
  std::vector<std::string> names;
  for (const ModelGraph::Entry& entry : model.entries)
    for (const Symbol& symbol : entry.graph.symbols)
      if (std::find(names.begin(), names.end(), symbol.name) == names.end()) names.push_back(symbol.name);
  std::string all;
  for (const std::string& name : names) append(all, text(all.empty() ? "" : ", ", name));
  return all.empty() ? "none" : all;
}

}  // namespace

Status bind_symbol(ModelGraph& model, std::string_view symbol, int64_t extent) {
  if (extent < 1)
    return invalid_argument("dimension '", symbol, "': expected an extent of at least 1, found ", extent);
  bool found = false;
  for (ModelGraph::Entry& entry : model.entries) {
    Graph& graph = entry.graph;
    RT_TRY(check_bound(graph, symbol, extent));
    if (!replace_symbol(graph, symbol, extent)) continue;
    found = true;
    // Bodies use the symbols too; they are written again.
    bool had_bodies = false;
    for (Node& node : graph.nodes) {
      const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
      if (page == nullptr || page->body == nullptr || node.bodies.empty()) continue;
      node.bodies.clear();
      had_bodies = true;
    }
    RT_TRY(annotate_again(graph, model.states).in(text("with ", symbol, "=", extent)));
    if (had_bodies) RT_TRY(expand_composites(graph, model.states));
  }
  if (!found)
    return invalid_argument("dimension '", symbol, "': the model has no such symbol; it has ",
                            names_of_symbols(model));
  return {};
}

Status freeze_states(ModelGraph& model) {
  for (ModelGraph::Entry& entry : model.entries)
    if (!entry.graph.state_updates.empty())
      return invalid_argument("entry '", entry.name,
                              "' updates states, so they cannot become constants; drop it first");
  for (ModelGraph::Entry& entry : model.entries)
    for (Value& value : entry.graph.values) {
      if (value.role != Role::State) continue;
      const State& state = model.states[value.state];
      value.role = Role::Constant;
      value.state = kNoState;
      value.data = state.initial.data != nullptr || state.info.bytes() == 0
                       ? state.initial
                       : Blob::own(std::vector<std::byte>(state.info.bytes()));
      if (value.name.empty()) value.name = state.name;
    }
  model.states.clear();
  return {};
}

}  // namespace librt::compiler
