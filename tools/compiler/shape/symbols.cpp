#include "tools/compiler/shape/symbols.h"

#include <algorithm>
#include <vector>

#include "runtime/ops/control.h"

namespace librt::compiler {
namespace {

int32_t find_symbol(const Graph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.symbols.size(); ++i)
    if (graph.symbols[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

}  // namespace

bool replace_symbol(Graph& graph, std::string_view name, int64_t extent, std::string_view other) {
  bool found = false;
  for (Node& node : graph.nodes)
    if (ops::is_control(node.kind()))
      for (Graph& body : node.bodies) found |= replace_symbol(body, name, extent, other);
  const int32_t symbol = find_symbol(graph, name);
  if (symbol < 0) return found;
  const Dim with = other.empty() ? Dim{.extent = extent} : Dim{.symbol = graph.symbol(other)};
  for (Symbol& derived : graph.symbols)
    for (ExtentTerm& term : derived.definition) {
      if (term.op != ExtentOp::Symbol) continue;
      if (term.value == symbol)
        term = with.is_known() ? ExtentTerm{ExtentOp::Constant, with.extent}
                               : ExtentTerm{ExtentOp::Symbol, with.symbol};
      if (term.op == ExtentOp::Symbol && term.value > symbol) --term.value;
    }
  for (Value& value : graph.values)
    for (Dim& dim : value.dims) {
      if (dim.symbol == symbol) dim = with;
      if (dim.symbol > symbol) --dim.symbol;
    }
  graph.symbols.erase(graph.symbols.begin() + symbol);
  return true;
}

int32_t copy_symbol(const Graph& from, int32_t symbol, Graph& to, SymbolIndex& names) {
  const Symbol& source = from.symbols[static_cast<size_t>(symbol)];
  if (const int32_t found = names.find(source.name); found >= 0) {
    to.symbols[static_cast<size_t>(found)].bound = source.bound;
    return found;
  }
  std::vector<ExtentTerm> definition = source.definition;
  for (ExtentTerm& term : definition)
    if (term.op == ExtentOp::Symbol)
      term.value = copy_symbol(from, static_cast<int32_t>(term.value), to, names);
  to.symbols.push_back({source.name, source.bound, std::move(definition)});
  return static_cast<int32_t>(to.symbols.size() - 1);
}

void drop_unused_symbols(Graph& graph) {
  std::vector<bool> used(graph.symbols.size());
  for (const Value& value : graph.values)
    for (const Dim& dim : value.dims)
      if (!dim.is_known() && dim.symbol >= 0) used[static_cast<size_t>(dim.symbol)] = true;
  for (size_t i = 0; i < graph.symbols.size(); ++i)
    for (const ExtentTerm& term : graph.symbols[i].definition)
      if (used[i] && term.op == ExtentOp::Symbol) used[static_cast<size_t>(term.value)] = true;
  std::vector<int32_t> number(graph.symbols.size());
  std::vector<Symbol> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    number[i] = static_cast<int32_t>(kept.size());
    if (used[i]) kept.push_back(std::move(graph.symbols[i]));
  }
  for (Symbol& symbol : kept)
    for (ExtentTerm& term : symbol.definition)
      if (term.op == ExtentOp::Symbol) term.value = number[static_cast<size_t>(term.value)];
  for (Value& value : graph.values)
    for (Dim& dim : value.dims)
      if (dim.symbol >= 0) dim.symbol = number[static_cast<size_t>(dim.symbol)];
  graph.symbols = std::move(kept);
}

}  // namespace librt::compiler
