// Builder: probe inference and the appending of nodes. See builder.h for the idea.
#include "tools/compiler/builder.h"

#include <algorithm>
#include <cstring>

#include "runtime/ops/evaluate.h"
#include "runtime/ops/page.h"

namespace rt::compiler {
namespace {

/// Values up to this many elements are computed while building; that is plenty for shapes, and cheap.
constexpr int64_t kFoldElements = 4096;
constexpr int64_t kFoldInputElements = 65536;

/// Where a symbol first appears among the graph's inputs.
struct Place {
  int axis = 0;
  int rank = 1;
};

/// The ways of choosing probes, in the order in which they are tried.
enum Strategy {
  kDistinct,       ///< small primes; multiples of 64 on the later axes of inputs of rank 4 and above (images)
  kDistinctLarge,  ///< multiples of 64 on every axis but the first
  kByAxis,  ///< symbols on the same axis are equal: inputs whose lengths are named apart but must agree
  kByAxisLarge,
  kSquare,     ///< all axes but the first are equal multiples of 64
  kAllEqual,   ///< every symbol is the same small number
  kOneSample,  ///< the first axes are 1: models exported for one sample only
  kOneSampleLarge,
  kAllOne,
  kStrategies,
};

int64_t nth_prime(int n) {
  int64_t candidate = 1;
  for (int found = -1; found < n;) {
    ++candidate;
    bool prime = true;
    for (int64_t divisor = 2; divisor * divisor <= candidate && prime; ++divisor)
      prime = candidate % divisor != 0;
    if (prime) ++found;
  }
  return candidate;
}

/// A pair of primes (2,3), (5,7), (11,13)... times `unit`; pairs have distinct ratios, so h/32 is not taken
/// for batch.
std::array<int64_t, kProbes> prime_pair(int index, int64_t unit) {
  return {unit * nth_prime(2 * index), unit * nth_prime(2 * index + 1)};
}

std::array<int64_t, kProbes> choose(int strategy, int symbol, Place place) {
  const bool first = place.axis == 0;
  const auto one = std::array<int64_t, kProbes>{1, 1};
  switch (strategy) {
    case kDistinct: return prime_pair(symbol, place.rank >= 4 && !first ? 64 : 1);
    case kDistinctLarge: return prime_pair(symbol, first ? 1 : 64);
    case kByAxis: return prime_pair(place.axis, place.rank >= 4 && !first ? 64 : 1);
    case kByAxisLarge: return prime_pair(place.axis, first ? 1 : 64);
    case kSquare: return first ? prime_pair(0, 1) : prime_pair(1, 64);
    case kAllEqual: return prime_pair(0, 1);
    case kOneSample: return first ? one : prime_pair(symbol + 1, place.rank >= 4 ? 64 : 1);
    case kOneSampleLarge: return first ? one : prime_pair(place.axis, 64);
    default: return one;
  }
}

/// Brings a pair below the largest extent that the symbol may have, keeping it a multiple of a power of two
/// if it was.
std::array<int64_t, kProbes> within(std::array<int64_t, kProbes> pair, int64_t bound) {
  if (bound <= 0) return pair;
  while (std::max(pair[0], pair[1]) > bound && pair[0] % 2 == 0 && pair[1] % 2 == 0) {
    pair[0] /= 2;
    pair[1] /= 2;
  }
  if (std::max(pair[0], pair[1]) > bound) pair = {std::max<int64_t>(bound - 1, 1), bound};
  return pair;
}

Place place_of(const Graph& graph, int32_t symbol) {
  for (ValueId input : graph.inputs) {
    const Value& value = graph.values[input];
    for (int axis = 0; axis < value.rank(); ++axis)
      if (value.dims[static_cast<size_t>(axis)].symbol == symbol) return {.axis = axis, .rank = value.rank()};
  }
  return {};
}

Status check_node(const Graph& graph, const Node& node, const ops::Page& page) {
  const auto out_of = [](size_t count, ops::Arity arity) {
    return count < arity.least || (arity.most != ops::kUnbounded && count > arity.most);
  };
  if (out_of(node.inputs.size(), page.inputs))
    return invalid_model(describe(node), ": expected ", int{page.inputs.least}, " to ", int{page.inputs.most},
                         " inputs, found ", node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input != kNoValue && input >= graph.values.size())
      return internal_error(describe(node), ": input ", i, " refers to value ", input, " of ",
                            graph.values.size());
  }
  return {};
}

}  // namespace

Builder::Builder(Graph& graph, const std::vector<State>* states) : graph_(graph), states_(states) {
  for (const Node& node : graph_.nodes) names_.emplace(node.name, 0);
  choose_symbol_probes();
  probes_.resize(graph_.values.size());
  Status first = infer_all();
  while (!first.ok() && !graph_.symbols.empty() && strategy_ + 1 < kStrategies) {
    ++strategy_;
    choose_symbol_probes();
    if (infer_all().ok()) first = Status();
  }
  if (!first.ok()) fail(std::move(first));
}

void Builder::fail(Status status) {
  if (status_.ok() && !status.ok()) status_ = std::move(status);
}

void Builder::choose_symbol_probes() {
  symbol_probes_.clear();
  for (size_t i = 0; i < graph_.symbols.size(); ++i) {
    const auto symbol = static_cast<int32_t>(i);
    symbol_probes_.push_back(
        within(choose(strategy_, symbol, place_of(graph_, symbol)), graph_.symbols[i].bound));
  }
}

int64_t Builder::symbol_probe(int32_t symbol, int probe) const {
  const auto index = static_cast<size_t>(symbol);
  if (index < symbol_probes_.size()) return symbol_probes_[index][static_cast<size_t>(probe)];
  return choose(strategy_, symbol, {})[static_cast<size_t>(probe)];
}

void Builder::set_source_probes(ValueId id) {
  const Value& value = graph_.values[id];
  for (int probe = 0; probe < kProbes; ++probe) {
    ProbeValue& known = probes_[id][static_cast<size_t>(probe)];
    known = {.info = {.dtype = value.dtype, .shape = {}}, .value = {}};
    for (int axis = 0; axis < value.rank(); ++axis) {
      const Dim& dim = value.dims[static_cast<size_t>(axis)];
      if (dim.is_known())
        known.info.shape.push_back(dim.extent);
      else if (dim.symbol >= 0)
        known.info.shape.push_back(symbol_probe(dim.symbol, probe));
      else  // nameless: as a symbol of its own, one for each axis
        known.info.shape.push_back(symbol_probe(static_cast<int32_t>(graph_.symbols.size()) + axis, probe));
    }
    if (value.role == Role::Constant) known.value = value.data;
  }
}

void Builder::annotate(ValueId id) {
  const Probes& known = probes_[id];
  Value& value = graph_.values[id];
  value.dtype = known[0].info.dtype;
  value.dims.assign(static_cast<size_t>(known[0].info.shape.rank()), Dim{});
  for (int axis = 0; axis < value.rank(); ++axis) {
    Dim& dim = value.dims[static_cast<size_t>(axis)];
    const int64_t first = known[0].info.shape[axis];
    const int64_t second = known[1].info.shape[axis];
    if (first == second) dim.extent = first;
    for (size_t symbol = 0; symbol < symbol_probes_.size() && first != second && dim.symbol < 0; ++symbol)
      if (symbol_probes_[symbol] == std::array<int64_t, kProbes>{first, second})
        dim.symbol = static_cast<int32_t>(symbol);
  }
}

Status Builder::infer_probe(const Node& node, int probe, std::vector<ProbeValue>& outputs) const {
  const ops::Page* page = ops::page_of(node.kind());
  if (page == nullptr)
    return unsupported(describe(node), ": this build does not know the operator; convert with a newer one");
  RT_TRY(check_node(graph_, node, *page));

  std::vector<Operand> operands(node.inputs.size());
  std::vector<ConstTensorView> views(node.inputs.size());
  // The runtime computes shapes again, from what it has values for.
  bool foldable = !page->impure && ops::can_evaluate(node, ops::host_value);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const ProbeValue& known = probes_[node.inputs[i]][static_cast<size_t>(probe)];
    const void* bytes = known.value.data;
    // An empty tensor has a value, though no bytes.
    if (bytes == nullptr && known.info.elements() == 0) bytes = "";
    operands[i] = {.present = true, .info = known.info, .value = bytes};
    views[i] = {bytes, known.info};
    if (i < 32 && (page->shape_operands >> i & 1u) != 0 && bytes == nullptr)
      return unsupported(
          describe(node), ": input ", i,
          " gives a shape and must be known from shapes and constants alone, but it depends on the "
          "data of an input; make it a constant in the model");
    if (node.kind() == OpKind::Shape) continue;  // needs no data
    foldable = foldable && bytes != nullptr && known.info.elements() <= kFoldInputElements;
  }

  std::vector<TensorInfo> infos;
  RT_TRY(ops::infer_node({.node = node, .inputs = operands}, infos));
  int64_t total = 0;
  for (const TensorInfo& info : infos) {
    if (!info.shape.checked_elements())
      return invalid_model(describe(node), ": result ", info, " is too large");
    total += info.elements();
    outputs.push_back({.info = info, .value = {}});
  }
  if (!node.outputs.empty() && node.outputs.size() != infos.size())
    return invalid_model(describe(node), ": expected ", infos.size(), " outputs, found ",
                         node.outputs.size());
  if (!foldable || total > kFoldElements) return {};

  std::vector<ops::HostTensor> results;
  std::vector<TensorView> result_views;
  for (const TensorInfo& info : infos) results.emplace_back(info);
  for (ops::HostTensor& result : results) result_views.push_back(result.view());
  RT_TRY(ops::evaluate_node({.node = node, .inputs = operands, .outputs = infos}, views, result_views,
                            ops::host_value));
  for (size_t i = 0; i < infos.size(); ++i) outputs[i].value = Blob::own(std::move(results[i].bytes));
  return {};
}

Status Builder::infer(const Node& node, std::vector<Probes>& outputs) const {
  std::array<std::vector<ProbeValue>, kProbes> by_probe;
  for (int probe = 0; probe < kProbes; ++probe)
    RT_TRY(infer_probe(node, probe, by_probe[static_cast<size_t>(probe)]));
  outputs.clear();
  for (size_t i = 0; i < by_probe[0].size(); ++i) {
    if (by_probe[0][i].info.shape.rank() != by_probe[1][i].info.shape.rank())
      return unsupported(describe(node), ": the rank of output ", i,
                         " depends on the extents of the inputs (", by_probe[0][i].info, " or ",
                         by_probe[1][i].info, ")");
    outputs.push_back({std::move(by_probe[0][i]), std::move(by_probe[1][i])});
  }
  return {};
}

Status Builder::infer_all() {
  for (ValueId id = 0; id < graph_.values.size(); ++id) {
    const Value& value = graph_.values[id];
    if (value.role == Role::State && states_ != nullptr && value.state >= states_->size())
      return invalid_model("value '", value.name, "': refers to state ", value.state, " of ",
                           states_->size());
    if (value.role != Role::Intermediate) set_source_probes(id);
  }
  std::vector<Probes> outputs;
  for (const Node& node : graph_.nodes) {
    RT_TRY(infer(node, outputs));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      probes_[node.outputs[i]] = std::move(outputs[i]);
      annotate(node.outputs[i]);
    }
  }
  return {};
}

Status Builder::infer_somehow(const Node& node, std::vector<Probes>& outputs) {
  Status first = infer(node, outputs);
  if (first.ok() || graph_.symbols.empty()) return first;
  const int before = strategy_;
  for (int step = 1; step < kStrategies; ++step) {
    strategy_ = (before + step) % kStrategies;
    choose_symbol_probes();
    if (infer_all().ok() && infer(node, outputs).ok()) return {};
  }
  strategy_ = before;
  choose_symbol_probes();
  RT_TRY(infer_all());
  return first;
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
  if (Status status = infer_somehow(node, outputs); !status.ok()) {
    fail(std::move(status));
    return failed;
  }
  node.outputs.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value value;
    value.name = outputs.size() == 1 ? node.name : text(node.name, '.', i);
    node.outputs.push_back(graph_.add_value(std::move(value)));
    probes_.push_back(std::move(outputs[i]));
    annotate(node.outputs.back());
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
  probes_.emplace_back();
  set_source_probes(id);
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
  probes_.emplace_back();
  const auto before = symbol_probes_;
  choose_symbol_probes();
  set_source_probes(id);
  // A new input may tell more about a symbol; what was inferred with its old probes is inferred again.
  const bool same = before.size() <= symbol_probes_.size() &&
                    std::equal(before.begin(), before.end(), symbol_probes_.begin());
  if (!same) fail(infer_all());
  return id;
}

ValueId Builder::state(std::string name, uint32_t state, const TensorInfo& info) {
  if (!status_.ok()) return kNoValue;
  Value value{.name = std::move(name), .dtype = info.dtype, .role = Role::State};
  for (int64_t extent : info.shape) value.dims.push_back({.extent = extent});
  value.state = state;
  const ValueId id = graph_.add_value(std::move(value));
  probes_.emplace_back();
  set_source_probes(id);
  return id;
}

std::optional<ConstTensorView> Builder::known_value(ValueId id) const {
  const Probes& known = probes_[id];
  if (known[0].info != known[1].info) return std::nullopt;
  if (known[0].info.elements() == 0) return ConstTensorView{"", known[0].info};
  const Blob& first = known[0].value;
  const Blob& second = known[1].value;
  if (first.data == nullptr || second.data == nullptr) return std::nullopt;
  if (first.data != second.data && std::memcmp(first.data, second.data, first.size) != 0) return std::nullopt;
  return ConstTensorView{first.data, known[0].info};
}

}  // namespace rt::compiler
