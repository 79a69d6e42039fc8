#include "tools/compiler/shape/shape_inference.h"

#include <algorithm>

#include "tools/compiler/shape/probe_choice.h"
#include "tools/compiler/shape/symbols.h"

namespace librt::compiler {

Status ShapeInference::infer_graph() {
  choose_symbol_probes();
  return infer_under_any_probes();
}

void ShapeInference::set_source(ValueId id) {
  known_.resize(graph_.values.size());
  probes_.resize(graph_.values.size());
  known_[id] = known_source(id);
  const Value& value = graph_.values[id];
  for (int probe = 0; probe < kProbes; ++probe) {
    ProbeValue& known = probes_[id][static_cast<size_t>(probe)];
    known = {.info = {.dtype = value.dtype, .shape = {}}, .value = {}};
    for (const Dim& dim : value.dims)
      known.info.shape.push_back(dim.is_known() ? dim.extent : symbol_probe(dim.symbol, probe));
    if (value.role == Role::Constant) known.value = value.data;
  }
}

int32_t ShapeInference::symbol(std::string_view name) {
  if (const int32_t known = names_.find(name); known >= 0) return known;
  graph_.symbols.push_back({.name = std::string(name)});
  return static_cast<int32_t>(graph_.symbols.size() - 1);
}

int32_t ShapeInference::copy_symbol(const Graph& from, int32_t symbol) {
  return compiler::copy_symbol(from, symbol, graph_, names_);
}

Status ShapeInference::add_input(ValueId id) {
  failure_ = {};
  if (sums_.define(graph_, names_)) {
    infer_again();
    return failure_;
  }
  // A new input may change a symbol's probes; everything inferred with the old ones is inferred again.
  const auto changes = [&](const Dim& dim) {
    const auto index = static_cast<size_t>(dim.symbol);
    if (dim.symbol < 0 || index >= symbol_probes_[0].size() || !graph_.symbols[index].definition.empty())
      return false;
    const auto chosen = choose_probes(graph_, strategy_, dim.symbol, names_.position_of(dim.symbol));
    return chosen[0] != symbol_probes_[0][index] || chosen[1] != symbol_probes_[1][index];
  };
  const std::vector<Dim>& dims = graph_.values[id].dims;
  const bool same = std::none_of(dims.begin(), dims.end(), changes);
  if (same)
    add_symbol_probes();
  else
    choose_symbol_probes();
  set_source(id);
  return same ? Status() : infer_all();
}

Status ShapeInference::infer(const Node& node, std::vector<Inferred>& results) {
  failure_ = {};
  std::vector<Probes> outputs;
  std::vector<Known> known;
  do {
    if (Status status = infer_somehow(node, outputs); !status.ok()) fail(std::move(status));
    if (!failure_.ok()) return failure_;
    std::vector<Demand> demands;
    known = conclude(node, outputs, demands);
    if (!meet_demands(node, demands)) break;
  } while (failure_.ok());  // each time with one symbol less
  results.clear();
  for (size_t i = 0; i < outputs.size(); ++i) results.push_back({std::move(outputs[i]), std::move(known[i])});
  return failure_;
}

void ShapeInference::add_result(ValueId id, Inferred result) {
  probes_.resize(graph_.values.size());
  known_.resize(graph_.values.size());
  probes_[id] = std::move(result.probes);
  annotate(id, std::move(result.known));
}

void ShapeInference::annotate(ValueId id, Known known) {
  Value& value = graph_.values[id];
  value.dtype = probes_[id][0].info.dtype;
  value.dims.clear();
  for (const Extent& extent : known.dims) graph_.values[id].dims.push_back(dim_of(extent));
  known_[id] = std::move(known);
}

Status ShapeInference::infer_all() {
  known_.resize(graph_.values.size());
  probes_.resize(graph_.values.size());
  for (ValueId id = 0; id < graph_.values.size(); ++id) {
    const Value& value = graph_.values[id];
    if (value.role == Role::State && states_ != nullptr && value.state >= states_->size())
      return invalid_model("value '", value.name, "': refers to state ", value.state, " of ",
                           states_->size());
    if (value.role != Role::Intermediate) set_source(id);
  }
  std::vector<Probes> outputs;
  std::vector<Demand> demands;
  for (const Node& node : graph_.nodes) {
    RT_TRY(infer_checked(node, outputs));
    std::vector<Known> known = conclude(node, outputs, demands);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      probes_[node.outputs[i]] = std::move(outputs[i]);
      annotate(node.outputs[i], std::move(known[i]));
    }
  }
  return {};
}

void ShapeInference::forget_extents() {
  extents_ = {};
  symbol_extents_.clear();
  derived_.clear();
  registered_ = 0;
  names_.clear();
  sums_.clear();
}

void ShapeInference::infer_again() {
  forget_extents();
  strategy_ = kDistinct;
  choose_symbol_probes();
  fail(infer_under_any_probes());
}

void ShapeInference::fail(Status status) {
  if (failure_.ok() && !status.ok()) failure_ = std::move(status);
}

Entries ShapeInference::known_entries(ValueId id) const {
  const Known& known = known_[id];
  if (!known.has_elements) {
    const bool is_small = known.is_static() && has_at_most(probes_[id][0].info.shape, kMostElements);
    return Entries(is_small ? static_cast<size_t>(probes_[id][0].info.elements()) : 0);
  }
  Entries entries;
  for (const Extent& element : known.elements) {
    entries.emplace_back();
    if (element.is_constant()) entries.back() = element.constant;
  }
  return entries;
}

std::optional<ConstTensorView> ShapeInference::known_value(ValueId id) const {
  if (known_[id].bytes == nullptr) return std::nullopt;
  return ConstTensorView{known_[id].bytes, probes_[id][0].info};
}

}  // namespace librt::compiler
