// Builder: appending nodes. See builder.h for the idea.
#include "tools/compiler/builder.h"

#include <algorithm>

#include "runtime/ops/evaluate.h"

namespace librt::compiler {

Builder::Builder(Graph& graph, const std::vector<State>* states) : graph_(graph), states_(states) {
  for (const Node& node : graph_.nodes) names_.emplace(node.name, 0);
  choose_symbol_probes();
  fail(infer_under_any_probes());
}

void Builder::fail(Status status) {
  if (status_.ok() && !status.ok()) status_ = std::move(status);
}

void Builder::annotate(ValueId id, Known known) {
  Value& value = graph_.values[id];
  value.dtype = probes_[id][0].info.dtype;
  value.dims.clear();
  for (const Extent& extent : known.dims) graph_.values[id].dims.push_back(dim_of(extent));
  known_[id] = std::move(known);
}

Status Builder::infer_all() {
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
    RT_TRY(infer(node, outputs));
    std::vector<Known> known = conclude(node, outputs, demands);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      probes_[node.outputs[i]] = std::move(outputs[i]);
      annotate(node.outputs[i], std::move(known[i]));
    }
  }
  return {};
}

std::string Builder::unique_name(std::string_view wanted) {
  auto [entry, fresh] = names_.try_emplace(std::string(wanted), 0);
  if (fresh) return entry->first;
  std::string name;
  do name = text(wanted, '_', ++entry->second);
  while (names_.contains(name));
  names_.emplace(name, 0);
  return name;
}

std::vector<ValueId> Builder::emit_node(Node node) {
  std::vector<ValueId> failed(std::max<size_t>(node.outputs.size(), 1), kNoValue);
  if (!status_.ok()) return failed;
  node.name = unique_name(!node.name.empty() ? std::string_view(node.name)
                          : !scope_.empty()  ? std::string_view(scope_)
                                             : name_of(node.kind()));
  std::vector<Probes> outputs;
  std::vector<Known> known;
  do {
    if (Status status = infer_somehow(node, outputs); !status.ok()) {
      fail(std::move(status));
      return failed;
    }
    std::fill(node.outputs.begin(), node.outputs.end(), kNoValue);
    std::vector<Demand> demands;
    known = conclude(node, outputs, demands);
    if (!meet_demands(node, demands)) break;
  } while (status_.ok());  // each time with one symbol less
  if (!status_.ok()) return failed;
  node.outputs.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value value;
    value.name = outputs.size() == 1 ? node.name : text(node.name, '.', i);
    node.outputs.push_back(graph_.add_value(std::move(value)));
    probes_.push_back(std::move(outputs[i]));
    known_.emplace_back();
    annotate(node.outputs.back(), std::move(known[i]));
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

std::vector<ValueId> Builder::emit_many(OpAttributes op, std::span<const ValueId> inputs, size_t outputs) {
  Node node;
  node.op = std::move(op);
  node.inputs.assign(inputs.begin(), inputs.end());
  node.outputs.assign(outputs, kNoValue);
  return emit_node(std::move(node));
}

ValueId Builder::constant(const TensorInfo& info, Blob data) {
  if (!status_.ok()) return kNoValue;
  if (!info.shape.checked_elements() || data.size != info.bytes()) {
    fail(internal_error("constant: expected ", info.bytes(), " bytes for ", info, ", found ", data.size));
    return kNoValue;
  }
  const ValueId id = graph_.add_constant("", info, std::move(data));
  set_source(id);
  return id;
}

ValueId Builder::input(std::string name, DType dtype, std::vector<Dim> dims) {
  if (!status_.ok()) return kNoValue;
  if (dims.size() > kMaxRank) {
    fail(unsupported("input '", name, "': expected at most ", kMaxRank, " dimensions, found ", dims.size()));
    return kNoValue;
  }
  Value value{.name = std::move(name), .dtype = dtype, .role = Role::Input, .dims = std::move(dims)};
  const ValueId id = graph_.add_value(std::move(value));
  graph_.inputs.push_back(id);
  if (define_sums()) {
    infer_again();
    return id;
  }
  const auto before = symbol_probes_;
  choose_symbol_probes();
  set_source(id);
  // A new input may change a symbol's probes; everything inferred with the old ones is inferred again.
  const bool same = before[0].size() <= symbol_probes_[0].size() &&
                    std::equal(before[0].begin(), before[0].end(), symbol_probes_[0].begin()) &&
                    std::equal(before[1].begin(), before[1].end(), symbol_probes_[1].begin());
  if (!same) fail(infer_all());
  return id;
}

ValueId Builder::state(std::string name, uint32_t state, const TensorInfo& info) {
  if (!status_.ok()) return kNoValue;
  Value value{.name = std::move(name), .dtype = info.dtype, .role = Role::State};
  for (int64_t extent : info.shape) value.dims.push_back({.extent = extent});
  value.state = state;
  const ValueId id = graph_.add_value(std::move(value));
  set_source(id);
  return id;
}

Entries Builder::known_entries(ValueId id) const {
  const Known& known = known_[id];
  if (!known.has_elements) {
    const int64_t count = probes_[id][0].info.elements();
    return Entries(known.is_static() && count <= kMostElements ? static_cast<size_t>(count) : 0);
  }
  Entries entries;
  for (const Extent& element : known.elements) {
    entries.emplace_back();
    if (element.is_constant()) entries.back() = element.constant;
  }
  return entries;
}

std::optional<ConstTensorView> Builder::known_value(ValueId id) const {
  if (known_[id].bytes == nullptr) return std::nullopt;
  return ConstTensorView{known_[id].bytes, probes_[id][0].info};
}

}  // namespace librt::compiler
