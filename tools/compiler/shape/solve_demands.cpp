// ShapeInference: the constraints that nodes put on symbols, and how symbols are replaced to meet them.
#include <algorithm>

#include "tools/compiler/shape/probe_choice.h"
#include "tools/compiler/shape/required_changes.h"
#include "tools/compiler/shape/shape_inference.h"
#include "tools/compiler/shape/symbols.h"

namespace librt::compiler {
namespace {

constexpr size_t kMostDemandTexts = 8;
/// Nodes inferred again after symbols were replaced: about a minute.
constexpr size_t kMostRepeatedWork = size_t{1} << 24;

}  // namespace

std::vector<Demand> ShapeInference::demands_of(const Node& node) {
  const ExtentRule rule = ops::extent_rule(node.kind());
  std::vector<Demand> demands;
  if (rule != ExtentRule::Own) return demands;
  std::vector<std::vector<Extent>> nothing;
  const std::vector<const Known*> inputs = known_inputs(node);
  const ops::Page& page = *ops::page_of(node.kind());
  if (inputs.size() < page.inputs.least) return demands;
  for (size_t i = 0; i < page.inputs.least; ++i)
    if (inputs[i] == nullptr) return demands;
  infer_extents(extents_, node, inputs, nothing, demands);
  return demands;
}

bool ShapeInference::meet_demands(const Node& node, const std::vector<Demand>& demands) {
  for (const Demand& demand : demands) {
    const Extent difference = extents_.primitive(extents_.subtract(demand.a, demand.b));
    if (difference.polynomial < 0) continue;
    if (fitted_ != nullptr) {
      const auto solution =
          extents_.solve(difference, [&](int32_t symbol) { return names_.is_free_input(symbol); });
      if (solution && replace_by_solution(node, solution->first, solution->second)) return true;
    }
    std::string sentence =
        text(extents_.equation_text(difference, graph_.symbols), ": ", describe(node), " requires it");
    const bool is_new =
        std::find(demand_texts_.begin(), demand_texts_.end(), sentence) == demand_texts_.end();
    if (is_new && demand_texts_.size() < kMostDemandTexts) demand_texts_.push_back(std::move(sentence));
  }
  return false;
}

bool ShapeInference::replace_by_solution(const Node& node, int32_t symbol, Extent solution) {
  const auto other = extents_.as_symbol(solution);
  if (!other && !(solution.is_constant() && solution.constant >= 1)) return false;
  // Not by an extent that a node names: inferred again, it would get a new name, without end.
  if (other && !names_.is_free_input(*other)) return false;
  const std::string name = graph_.symbols[static_cast<size_t>(symbol)].name;
  const std::string by = other ? graph_.symbols[static_cast<size_t>(*other)].name : std::string();
  replace_symbol(graph_, name, solution.constant, by);
  fitted_->push_back(text("dimension '", name, "' is ",
                          other ? text('\'', by, '\'') : text(solution.constant), ": ", describe(node),
                          " accepts nothing else"));
  repeated_work_ += graph_.nodes.size() + graph_.values.size();
  if (repeated_work_ > kMostRepeatedWork)
    fail(unsupported(describe(node), ": too many dimensions with different names must be equal, among them '",
                     name, "'; give them one name, or fix them with --dim NAME=N"));
  else
    infer_again();
  return true;
}

ShapeInference::Candidates ShapeInference::candidates_of(const Node& node) const {
  const bool has_tuples = node.kind() == OpKind::GatherND || node.kind() == OpKind::ScatterND;
  // A group has only a fraction of all channels.
  int64_t groups = 1;
  if (node.kind() == OpKind::Conv) groups = node.as<op::ConvAttributes>().groups;
  if (node.kind() == OpKind::ConvInteger) groups = node.as<op::ConvIntegerAttributes>().groups;
  const auto add = [](auto& list, const auto& entry) {
    if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
  };
  Candidates found;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input == kNoValue) continue;
    const size_t rank = graph_[input].dims.size();
    for (size_t axis = 0; axis < rank; ++axis) {
      const Dim& dim = graph_[input].dims[axis];
      if (has_tuples && i == 1 && axis + 1 == rank) continue;  // any length of a tuple up to x's rank fits
      if (dim.is_known()) {
        add(found.dims, dim);
        if (groups > 1) add(found.dims, Dim{.extent = dim.extent * groups});
      } else if (dim.symbol >= 0 && names_.position_of(dim.symbol)) {
        add(found.symbols, dim.symbol);
        add(found.dims, dim);
      }
    }
    for (const auto& entry : known_entries(input))
      if (entry && *entry > 0) add(found.dims, Dim{.extent = *entry});
  }
  if (node.kind() == OpKind::Reshape) found.dims.clear();  // only their product matters; 1 is always tried
  return found;
}

/// Whether the page's rule accepts the node with these changes.
bool ShapeInference::fits(const Node& node, std::span<const SymbolChange> changes) const {
  const auto replaced = [&](const Dim& dim) {
    for (const auto& [symbol, with] : changes)
      if (dim.symbol == symbol) return with;
    return dim;
  };
  std::vector<Probes> assumed(node.inputs.size());
  for (size_t i = 0; i < assumed.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    assumed[i] = probes_[node.inputs[i]];
    const std::vector<Dim>& own = graph_[node.inputs[i]].dims;
    for (int probe = 0; probe < kProbes; ++probe)
      for (size_t axis = 0; axis < own.size(); ++axis)
        if (const Dim dim = replaced(own[axis]); dim != own[axis])
          assumed[i][static_cast<size_t>(probe)].info.shape[static_cast<int>(axis)] =
              dim.is_known() ? dim.extent : symbol_probe(dim.symbol, probe);
  }
  std::vector<Probes> found;
  return infer_with(node, &assumed, found).ok();
}

void ShapeInference::apply(const Node& node, const std::vector<SymbolChange>& changes) {
  // By name: indices change with every symbol that is dropped.
  const auto name_of_symbol = [&](int32_t symbol) {
    return symbol < 0 ? std::string() : graph_.symbols[static_cast<size_t>(symbol)].name;
  };
  std::vector<std::array<std::string, 2>> names;
  for (const auto& [symbol, with] : changes)
    names.push_back({name_of_symbol(symbol), name_of_symbol(with.symbol)});
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto& [name, other] = names[i];
    const int64_t extent = changes[i].second.extent;
    replace_symbol(graph_, name, extent, other);
    fitted_->push_back(text("dimension '", name, "' is ",
                            other.empty() ? text(extent) : text("'", other, "'"), ": ", describe(node),
                            " accepts nothing else"));
  }
  forget_extents();
}

/// Whether extents of the operands follow from ones that a node has named: a run may find any there.
bool ShapeInference::has_named_extents(const Node& node) {
  std::vector<int32_t> left;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    for (const Dim& dim : graph_[input].dims) {
      if (dim.is_known()) continue;
      if (dim.symbol < 0) return true;
      left.push_back(dim.symbol);
    }
  }
  std::vector<bool> seen(graph_.symbols.size());
  while (!left.empty()) {
    const int32_t symbol = left.back();
    left.pop_back();
    if (seen[static_cast<size_t>(symbol)]) continue;
    seen[static_cast<size_t>(symbol)] = true;
    const std::vector<ExtentTerm>& definition = graph_.symbols[static_cast<size_t>(symbol)].definition;
    if (definition.empty() && !names_.position_of(symbol)) return true;
    for (const ExtentTerm& term : definition)
      if (term.op == ExtentOp::Symbol) left.push_back(static_cast<int32_t>(term.value));
  }
  return false;
}

/// Whether the node broadcasts extents that are also equal where one symbol is 0: a causal mask of S queries
/// expanded to the S + P keys of a decoder fits the prompt (P = 0) as well as one further token (S = 1).
bool ShapeInference::broadcasts_where_empty(const Node& node) {
  std::vector<std::span<const Extent>> shapes;
  for (const Known* input : known_inputs(node))
    if (input != nullptr) shapes.push_back(input->dims);
  if (node.kind() == OpKind::Expand && shapes.size() == 2)
    shapes[1] = known_[node.inputs[1]].elements;
  else if (ops::extent_rule(node.kind()) != ExtentRule::Broadcast)
    return false;
  std::optional<int32_t> empty;
  for (size_t i = 0; i + 1 < shapes.size(); ++i) {
    const std::span<const Extent> a = shapes[i], b = shapes[i + 1];
    for (size_t back = 1; back <= std::min(a.size(), b.size()); ++back) {
      const Extent x = a[a.size() - back], y = b[b.size() - back];
      if (x == y || x.is_constant(1) || y.is_constant(1)) continue;
      auto symbol = extents_.as_symbol(extents_.subtract(x, y));
      if (!symbol) symbol = extents_.as_symbol(extents_.subtract(y, x));
      if (!symbol || !names_.is_free_input(*symbol) || (empty && empty != symbol)) return false;
      empty = symbol;
    }
  }
  return empty.has_value();
}

bool ShapeInference::change_symbols(const Node& node) {
  // Other extents than those at hand may fit as well.
  if (node.kind() == OpKind::Slice || has_named_extents(node)) return false;
  for (const int strategy : {kDistinct, kDistinctLarge}) {
    strategy_ = strategy;
    choose_symbol_probes();
    if (!infer_all().ok()) continue;
    const Candidates candidates = candidates_of(node);
    const std::vector<SymbolChange> changes =
        required_changes(candidates.symbols, candidates.dims,
                         [&](std::span<const SymbolChange> tried) { return fits(node, tried); });
    if (changes.empty()) continue;
    const bool all_one = std::ranges::all_of(
        changes, [](const SymbolChange& change) { return change.second == Dim{.extent = 1}; });
    if (all_one && broadcasts_where_empty(node)) return false;
    apply(node, changes);
    return true;
  }
  return false;
}

}  // namespace librt::compiler
