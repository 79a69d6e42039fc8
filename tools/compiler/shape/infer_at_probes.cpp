// ShapeInference: inference with concrete extents, under the probes.
#include <algorithm>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/shape/assumed_extents.h"
#include "tools/compiler/shape/probe_choice.h"
#include "tools/compiler/shape/shape_inference.h"

namespace librt::compiler {
namespace {

/// Values up to this many elements are computed while building; that is plenty for shapes, and cheap.
constexpr int64_t kFoldElements = 4096;
constexpr int64_t kFoldInputElements = 65536;

/// Nodes inferred again for nodes that were refused in the end, some seconds: beyond, the model is refused
/// for so many reasons that a better message for one more is not worth the time.
constexpr size_t kMostRefusedWork = size_t{1} << 20;

/// A shape operand has no more entries: one for each axis, or two (Pad).
constexpr int64_t kMostEntries = 2 * kMaxRank;

Status check_node(const Graph& graph, const Node& node, const ops::Page& page) {
  const auto out_of = [](size_t count, ops::Arity arity) {
    return count < arity.least || (arity.most != ops::kUnbounded && count > arity.most);
  };
  if (out_of(node.inputs.size(), page.inputs))
    return invalid_model(describe(node), ": expected ", int{page.inputs.least}, " to ", int{page.inputs.most},
                         " inputs, found ", node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input == kNoValue && i < page.inputs.least)
      return invalid_model(describe(node), ": input ", i, " is required, but absent");
    if (input != kNoValue && input >= graph.values.size())
      return internal_error(describe(node), ": input ", i, " refers to value ", input, " of ",
                            graph.values.size());
  }
  return {};
}

}  // namespace

void ShapeInference::choose_symbol_probes() {
  for (std::vector<int64_t>& extents : symbol_probes_) extents.clear();
  from_data_.clear();
  data_symbols_ = 0;
  names_.clear();
  add_symbol_probes();
}

void ShapeInference::add_symbol_probes() {
  const size_t known = symbol_probes_[0].size();
  for (size_t i = known; i < graph_.symbols.size(); ++i) {
    const auto symbol = static_cast<int32_t>(i);
    const auto pair = choose_probes(graph_, strategy_, symbol, names_.position_of(symbol));
    for (size_t probe = 0; probe < kProbes; ++probe) symbol_probes_[probe].push_back(pair[probe]);
  }
  for (size_t i = known; i < graph_.symbols.size(); ++i) {
    const Symbol& symbol = graph_.symbols[i];
    if (symbol.definition.empty()) continue;
    for (std::vector<int64_t>& extents : symbol_probes_)
      extents[i] = evaluate(symbol.definition, extents).value_or(extents[i]);
  }
}

int64_t ShapeInference::symbol_probe(int32_t symbol, int probe) const {
  const auto index = static_cast<size_t>(symbol);
  const std::vector<int64_t>& extents = symbol_probes_[static_cast<size_t>(probe)];
  if (index < extents.size()) return extents[index];
  return choose_probes(graph_, strategy_, symbol, names_.position_of(symbol))[static_cast<size_t>(probe)];
}

Status ShapeInference::infer_probe(const Node& node, int probe, const std::vector<Probes>* assumed,
                                   std::vector<ProbeValue>& outputs) const {
  const ops::Page* page = ops::page_of(node.kind());
  if (page == nullptr)
    return unsupported(describe(node), ": this build does not know the operator; convert with a newer one");
  RT_TRY(check_node(graph_, node, *page));

  std::vector<Operand> operands(node.inputs.size());
  std::vector<ConstTensorView> views(node.inputs.size());
  bool foldable = !page->impure && (page->run != nullptr || ops::can_evaluate(node, ops::host_value));
  // A shape operand is unknown, or its known value may not fit the made-up extents of the probes.
  const bool checks = requires_shape(node);
  bool open = checks || (strategy_ == kFree && node.kind() == OpKind::Reshape);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Probes& both = assumed != nullptr ? (*assumed)[i] : probes_[node.inputs[i]];
    const ProbeValue& known = both[static_cast<size_t>(probe)];
    const void* bytes = known.value.data;
    if (!known.info.shape.checked_elements())  // of assumed extents
      return unsupported(describe(node), ": input ", i, ", ", known.info, ", is too large");
    // An empty tensor has a value, though no bytes.
    if (bytes == nullptr && known.info.elements() == 0) bytes = "";
    operands[i] = {.present = true, .info = known.info, .value = bytes};
    views[i] = {bytes, known.info};
    open = open || (i < 32 && (page->shape_operands >> i & 1u) != 0 && bytes == nullptr);
    if (node.kind() == OpKind::Shape) continue;  // needs no data
    foldable = foldable && bytes != nullptr && known.info.elements() <= kFoldInputElements;
  }

  const NodeView view{.node = node, .inputs = operands};
  std::vector<TensorInfo> infos;
  RT_TRY(open ? infer_open(view, probe, infos) : ops::infer_node(view, infos));
  int64_t total = 0;
  for (const TensorInfo& info : infos) {
    const bool unknown = std::count(info.shape.begin(), info.shape.end(), ops::kUnknownExtent) > 0;
    if (!unknown && !info.shape.checked_elements())
      return invalid_model(describe(node), ": result ", info, " is too large");
    total += unknown ? 0 : info.elements();
    outputs.push_back({.info = info, .value = {}});
  }
  if (!node.outputs.empty() && node.outputs.size() != infos.size())
    return invalid_model(describe(node), ": expected ", infos.size(), " outputs, found ",
                         node.outputs.size());
  if (!foldable || checks || total > kFoldElements) return {};
  RT_ASSIGN(std::vector<ops::HostTensor> results, ops::evaluate_node(view, views, ops::host_value));
  for (size_t i = 0; i < infos.size(); ++i)
    outputs[i] = {.info = results[i].info, .value = Blob::own(std::move(results[i].bytes))};
  return {};
}

bool ShapeInference::requires_shape(const Node& node) const {
  if (node.kind() != OpKind::Identity || node.inputs.size() < 2 || node.inputs[1] == kNoValue) return false;
  const bool is_static = known_[node.inputs[0]].is_static() && known_[node.inputs[1]].bytes != nullptr;
  return !is_static;
}

Status ShapeInference::infer_open(const NodeView& view, int probe, std::vector<TensorInfo>& infos) const {
  static const Value kNone;
  const std::vector<ValueId>& inputs = view.node.inputs;
  std::vector<Entries> entries(inputs.size());
  const uint32_t shape_operands = ops::page_of(view.kind())->shape_operands;
  for (size_t i = 0; i < inputs.size() && i < 32; ++i) {
    if (inputs[i] == kNoValue || (shape_operands >> i & 1u) == 0) continue;
    const Probes& known = probes_[inputs[i]];
    if (known[0].info != known[1].info || !has_at_most(known[0].info.shape, kMostEntries))
      return unsupported(describe(view.node), ": the length of input ", i,
                         " depends on the extents of the inputs, so the rank of the result is unknown");
    entries[i] = entries_of(inputs[i], probe);
  }
  return infer_with_unknown_operands(view, entries, inputs[0] != kNoValue ? graph_[inputs[0]] : kNone, infos)
      .in(describe(view.node));
}

Entries ShapeInference::entries_of(ValueId id, int probe) const {
  const Known& known = known_[id];
  if (!known.has_elements || known.elements.size() > static_cast<size_t>(kMostEntries)) {
    const bool is_small = known.is_static() && has_at_most(probes_[id][0].info.shape, kMostEntries);
    return Entries(is_small ? static_cast<size_t>(probes_[id][0].info.elements()) : 0);
  }
  Entries entries;
  for (const Extent& element : known.elements)
    entries.push_back(extents_.evaluate(element, symbol_probes_[static_cast<size_t>(probe)]));
  return entries;
}

Status ShapeInference::infer_checked(const Node& node, std::vector<Probes>& outputs) const {
  Status plain = infer_with(node, nullptr, outputs);
  if (plain.ok() && !accept_empty_ && is_emptied(node, outputs))
    return unsupported(describe(node), ": the slice is empty at the extents that were tried");
  const bool open = strategy_ == kFree || depends_on_data();
  if (plain.ok() || !open || !infer_assuming(node, outputs)) return plain;
  return {};
}

bool ShapeInference::is_emptied(const Node& node, std::span<const Probes> outputs) const {
  if (node.kind() != OpKind::Slice) return false;
  const std::vector<Dim>& dims = graph_[node.inputs[0]].dims;
  const Probes& result = outputs[0];
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const auto at = static_cast<int>(axis);
    if (!dims[axis].is_known() && result[0].info.shape[at] == 0 && result[1].info.shape[at] == 0) return true;
  }
  return false;
}

bool ShapeInference::infer_assuming(const Node& node, std::vector<Probes>& outputs) const {
  std::vector<Probes> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.inputs[i] != kNoValue) inputs[i] = probes_[node.inputs[i]];
  AssumedExtents assumptions(std::move(inputs),
                             [&](const std::vector<Probes>& assumed, std::vector<Probes>& found) {
                               return infer_with(node, &assumed, found).ok();
                             });
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const std::vector<Dim>& dims = graph_[node.inputs[i]].dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (!dims[axis].is_known() && (strategy_ == kFree || !names_.position_of(dims[axis].symbol)))
        assumptions.open(i, static_cast<int>(axis));
  }
  return assumptions.run(outputs);
}

Status ShapeInference::infer_with(const Node& node, const std::vector<Probes>* assumed,
                                  std::vector<Probes>& outputs) const {
  std::array<std::vector<ProbeValue>, kProbes> by_probe;
  for (int probe = 0; probe < kProbes; ++probe)
    RT_TRY(infer_probe(node, probe, assumed, by_probe[static_cast<size_t>(probe)]));
  outputs.clear();
  for (size_t i = 0; i < by_probe[0].size(); ++i) {
    if (by_probe[0][i].info.shape.rank() != by_probe[1][i].info.shape.rank())
      return unsupported(describe(node), ": the rank of output ", i,
                         " depends on the extents of the inputs (", by_probe[0][i].info, " or ",
                         by_probe[1][i].info, ")");
    Shape& first = by_probe[0][i].info.shape;
    Shape& second = by_probe[1][i].info.shape;
    for (int axis = 0; axis < first.rank(); ++axis)
      if (first[axis] == ops::kUnknownExtent || second[axis] == ops::kUnknownExtent)
        first[axis] = second[axis] = ops::kUnknownExtent;
    outputs.push_back({std::move(by_probe[0][i]), std::move(by_probe[1][i])});
  }
  return {};
}

Status ShapeInference::infer_under_any_probes() {
  Status first = infer_all();
  while (!first.ok() && !graph_.symbols.empty() && strategy_ + 1 < kStrategies) {
    ++strategy_;
    choose_symbol_probes();
    if (infer_all().ok()) return {};
    if (strategy_ + 1 == kStrategies && !accept_empty_) {
      accept_empty_ = true;
      strategy_ = -1;
    }
  }
  return first;
}

Status ShapeInference::infer_somehow(const Node& node, std::vector<Probes>& outputs) {
  Status first = infer_checked(node, outputs);
  if (first.ok() || graph_.symbols.empty()) return first;
  const std::vector<Demand> demands = demands_of(node);
  if (fitted_ != nullptr && meet_demands(node, demands))
    return failure_.ok() ? infer_somehow(node, outputs) : failure_;  // nothing is known of the operands then
  if (refused_work_ > kMostRefusedWork) return refused(node, demands, std::move(first));
  const int before = strategy_;
  const size_t work_before = refused_work_;
  const auto attempt = [&](int strategy) {
    refused_work_ += graph_.nodes.size();
    strategy_ = strategy;
    choose_symbol_probes();
    return infer_all().ok() && infer_checked(node, outputs).ok();
  };
  // Starting with the current strategy; those that determine most of the results come first.
  const auto attempt_all = [&](int begin, int end) {
    for (int step = 0; step < end - begin; ++step)
      if (attempt(begin + (std::max(before, begin) - begin + step) % (end - begin))) return true;
    return false;
  };
  const auto found = [&] {
    refused_work_ = work_before;
    return Status();
  };
  if (attempt_all(kDistinct, kAllEqual)) return found();
  if (node.kind() == OpKind::Slice && !accept_empty_) {
    accept_empty_ = true;
    if (attempt(before)) return found();
  }
  if (fitted_ != nullptr && change_symbols(node) && attempt_all(kDistinct, kAllEqual)) return found();
  if (attempt_all(kAllEqual, kStrategies)) return found();
  strategy_ = before;
  choose_symbol_probes();
  RT_TRY(infer_all());
  return refused(node, demands_of(node), std::move(first));  // those from before are of other symbols
}

Status ShapeInference::refused(const Node& node, const std::vector<Demand>& demands, Status first) {
  // The extents that were tried are made up; the constraints on them are what the user can act on.
  std::string wanted;
  for (const Demand& demand : demands) {
    const Extent difference = extents_.primitive(extents_.subtract(demand.a, demand.b));
    if (difference.is_unknown() || difference.is_constant(0)) continue;
    append(wanted, wanted.empty() ? "" : ", ",
           difference.is_constant() ? text(extents_.text_of(demand.a, graph_.symbols), " = ",
                                           extents_.text_of(demand.b, graph_.symbols))
                                    : extents_.equation_text(difference, graph_.symbols));
  }
  if (wanted.empty()) return first;
  return invalid_model(describe(node), ": valid only where ", wanted,
                       ", and no such extents were found; fix dimensions with --dim NAME=N");
}

}  // namespace librt::compiler
