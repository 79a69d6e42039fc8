// Builder: probe inference and the appending of nodes. See builder.h for the idea.
#include "tools/compiler/builder.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/assume.h"
#include "tools/compiler/fit_symbols.h"

namespace rt::compiler {
namespace {

/// Values up to this many elements are computed while building; that is plenty for shapes, and cheap.
constexpr int64_t kFoldElements = 4096;
constexpr int64_t kFoldInputElements = 65536;

/// A shape operand has no more: one for each axis, or two (Pad).
constexpr int64_t kMostEntries = 2 * kMaxRank;

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
  kHuge,       ///< all axes are long: the best 1000 of many
  kAllEqual,   ///< every symbol is the same small number
  kFree,       ///< as kDistinct, and what follows from two extents that must fit is not known
  kOneSample,  ///< the first axes are 1: models exported for one sample only
  kOneSampleLarge,
  kAllOne,
  kStrategies,
};

int64_t nth_prime(int n) {
  static thread_local std::vector<int64_t> primes = {2};
  while (primes.size() <= static_cast<size_t>(n)) {
    int64_t candidate = primes.back() + 1;
    while (std::any_of(primes.begin(), primes.end(), [&](int64_t prime) { return candidate % prime == 0; }))
      ++candidate;
    primes.push_back(candidate);
  }
  return primes[static_cast<size_t>(n)];
}

/// A pair of primes (2,3), (5,7), (11,13)... times `unit`; pairs have distinct ratios, so h/32 is not taken
/// for batch.
std::array<int64_t, kProbes> prime_pair(int index, int64_t unit) {
  return {unit * nth_prime(2 * index), unit * nth_prime(2 * index + 1)};
}

std::array<int64_t, kProbes> choose(int strategy, int symbol, std::optional<Place> at) {
  // An extent that depends on data says nothing of others, whatever the inputs are: primes that no input has.
  constexpr int kInputPrimes = 64;
  if (!at) return prime_pair(kInputPrimes + symbol, 1);
  const Place place = *at;
  const bool first = place.axis == 0;
  const auto one = std::array<int64_t, kProbes>{1, 1};
  switch (strategy) {
    case kFree:
    case kDistinct: return prime_pair(symbol, place.rank >= 4 && !first ? 64 : 1);
    case kDistinctLarge: return prime_pair(symbol, first ? 1 : 64);
    case kByAxis: return prime_pair(place.axis, place.rank >= 4 && !first ? 64 : 1);
    case kByAxisLarge: return prime_pair(place.axis, first ? 1 : 64);
    case kHuge: return prime_pair(symbol, 1024);
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

/// nullopt for an extent that depends on data.
std::optional<Place> place_of(const Graph& graph, int32_t symbol) {
  for (ValueId input : graph.inputs) {
    const Value& value = graph.values[input];
    for (int axis = 0; axis < value.rank(); ++axis)
      if (value.dims[static_cast<size_t>(axis)].symbol == symbol)
        return Place{.axis = axis, .rank = value.rank()};
  }
  return std::nullopt;
}

/// The symbols whose sum a symbol's name says it is: "past_sequence_length + sequence_length", or "total_x"
/// beside "past_x" and "x". Numbers in a name ("past + 1") go to `constant`. Empty: it is no sum.
std::vector<int32_t> terms_of(const Graph& graph, const std::string& name, int64_t& constant) {
  const auto find = [&](std::string_view wanted) {
    const auto at = std::find_if(graph.symbols.begin(), graph.symbols.end(),
                                 [&](const Symbol& symbol) { return symbol.name == wanted; });
    return at == graph.symbols.end() ? -1 : static_cast<int32_t>(at - graph.symbols.begin());
  };
  constexpr std::string_view kTotal = "total_";
  std::vector<std::string> parts;
  if (name.starts_with(kTotal)) {
    parts = {name.substr(kTotal.size()), text("past_", name.substr(kTotal.size()))};
  } else {
    parts.emplace_back();
    for (const char c : name)
      if (c == '+')
        parts.emplace_back();
      else if (c != ' ')
        parts.back() += c;
  }
  std::vector<int32_t> terms;
  for (const std::string& part : parts) {
    const bool number = !part.empty() && part.size() < 10 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number)
      constant += std::stoll(part);
    else
      terms.push_back(find(part));
  }
  const bool sum = parts.size() > 1 && std::find(terms.begin(), terms.end(), -1) == terms.end();
  return sum ? terms : std::vector<int32_t>{};
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
    if (!first.ok() && strategy_ + 1 == kStrategies && !accept_empty_) {
      accept_empty_ = true;
      strategy_ = -1;
    }
  }
  if (!first.ok()) fail(std::move(first));
}

void Builder::fail(Status status) {
  if (status_.ok() && !status.ok()) status_ = std::move(status);
}

void Builder::choose_symbol_probes() {
  symbol_probes_.clear();
  add_symbol_probes();
}

void Builder::add_symbol_probes() {
  for (size_t i = symbol_probes_.size(); i < graph_.symbols.size(); ++i) {
    const auto symbol = static_cast<int32_t>(i);
    symbol_probes_.push_back(
        within(choose(strategy_, symbol, place_of(graph_, symbol)), graph_.symbols[i].bound));
  }
  for (size_t i = 0; i < graph_.symbols.size(); ++i) {
    int64_t constant = 0;
    const std::vector<int32_t> terms = terms_of(graph_, graph_.symbols[i].name, constant);
    if (terms.empty()) continue;
    for (size_t probe = 0; probe < kProbes; ++probe) {
      int64_t sum = constant;
      for (const int32_t term : terms) sum += symbol_probes_[static_cast<size_t>(term)][probe];
      symbol_probes_[i][probe] = sum;
    }
  }
}

bool Builder::depends_on_data() const {
  for (size_t i = 0; i < graph_.symbols.size(); ++i)
    if (!place_of(graph_, static_cast<int32_t>(i))) return true;
  return false;
}

int64_t Builder::symbol_probe(int32_t symbol, int probe) const {
  const auto index = static_cast<size_t>(symbol);
  if (index < symbol_probes_.size()) return symbol_probes_[index][static_cast<size_t>(probe)];
  return choose(strategy_, symbol, std::nullopt)[static_cast<size_t>(probe)];
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

Status Builder::infer_probe(const Node& node, int probe, const std::vector<Probes>* assumed,
                            std::vector<ProbeValue>& outputs) const {
  const ops::Page* page = ops::page_of(node.kind());
  if (page == nullptr)
    return unsupported(describe(node), ": this build does not know the operator; convert with a newer one");
  RT_TRY(check_node(graph_, node, *page));

  std::vector<Operand> operands(node.inputs.size());
  std::vector<ConstTensorView> views(node.inputs.size());
  bool foldable = !page->impure && (page->run != nullptr || ops::can_evaluate(node, ops::host_value));
  // A shape operand is not known, or what is known does not fit extents that are made up.
  bool open = strategy_ == kFree && node.kind() == OpKind::Reshape;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Probes& both = assumed != nullptr ? (*assumed)[i] : probes_[node.inputs[i]];
    const ProbeValue& known = both[static_cast<size_t>(probe)];
    const void* bytes = known.value.data;
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
  if (!foldable || total > kFoldElements) return {};
  RT_ASSIGN(std::vector<ops::HostTensor> results, ops::evaluate_node(view, views, ops::host_value));
  for (size_t i = 0; i < infos.size(); ++i)
    outputs[i] = {.info = results[i].info, .value = Blob::own(std::move(results[i].bytes))};
  return {};
}

Status Builder::infer_open(const NodeView& view, int probe, std::vector<TensorInfo>& infos) const {
  static const Value kNone;
  const std::vector<ValueId>& inputs = view.node.inputs;
  std::vector<Entries> entries(inputs.size());
  const uint32_t shape_operands = ops::page_of(view.kind())->shape_operands;
  for (size_t i = 0; i < inputs.size() && i < 32; ++i) {
    if (inputs[i] == kNoValue || (shape_operands >> i & 1u) == 0) continue;
    const Probes& known = probes_[inputs[i]];
    if (known[0].info != known[1].info || known[0].info.elements() > kMostEntries)
      return unsupported(describe(view.node), ": how many entries input ", i,
                         " has depends on the extents of the inputs, so the rank of the result is not known");
    entries[i] = entries_of(inputs[i], probe);
  }
  return infer_unknown(view, entries, inputs[0] != kNoValue ? graph_[inputs[0]] : kNone, infos)
      .in(describe(view.node));
}

Entries Builder::entries_of(ValueId id, int probe) const {
  const ProbeValue& known = probes_[id][static_cast<size_t>(probe)];
  const int64_t count = known.info.elements();
  if (count > kMostEntries) return {};
  Entries entries(static_cast<size_t>(count));
  if (known.value.data != nullptr && !is_float(known.info.dtype)) {
    for (size_t i = 0; i < entries.size(); ++i)
      entries[i] = load_integer(known.value.data, known.info.dtype, static_cast<int64_t>(i));
    return entries;
  }
  const auto producer = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
    return std::count(node.outputs.begin(), node.outputs.end(), id) > 0;
  });
  if (producer == graph_.nodes.end()) return entries;
  switch (producer->kind()) {
    case OpKind::Identity:
    case OpKind::Reshape: return entries_of(producer->inputs[0], probe);
    case OpKind::Cast:
      return is_float(graph_[producer->inputs[0]].dtype) ? entries : entries_of(producer->inputs[0], probe);
    case OpKind::Concat: {
      if (known.info.shape.rank() != 1) return entries;
      Entries joined;
      for (const ValueId part : producer->inputs) {
        const Entries own = entries_of(part, probe);
        joined.insert(joined.end(), own.begin(), own.end());
      }
      return joined.size() == entries.size() ? joined : entries;
    }
    case OpKind::Slice: {
      const auto start = known_value(producer->inputs[1]);
      const auto& attributes = producer->as<op::SliceAttributes>();
      const Entries whole = entries_of(producer->inputs[0], probe);
      if (!start || known.info.shape.rank() != 1 || attributes.steps != std::vector<int64_t>{1})
        return entries;
      int64_t first = load_integer(start->data, start->info.dtype, 0);
      if (first < 0) first += static_cast<int64_t>(whole.size());
      for (size_t i = 0; i < entries.size() && static_cast<size_t>(first) + i < whole.size(); ++i)
        entries[i] = whole[static_cast<size_t>(first) + i];
      return entries;
    }
    default: return entries;
  }
}

Entries Builder::known_entries(ValueId id) const {
  Entries entries = entries_of(id, 0);
  const Entries other = entries_of(id, 1);
  for (size_t i = 0; i < entries.size(); ++i)
    if (i >= other.size() || entries[i] != other[i]) entries[i].reset();
  return entries;
}

Status Builder::infer(const Node& node, std::vector<Probes>& outputs) const {
  Status plain = infer_with(node, nullptr, outputs);
  if (plain.ok() && !accept_empty_ && is_emptied(node, outputs))
    return unsupported(describe(node), ": the part lies behind the extents that were tried");
  const bool open = strategy_ == kFree || depends_on_data();
  if (plain.ok() || !open || !infer_assuming(node, outputs)) return plain;
  return {};
}

bool Builder::is_emptied(const Node& node, std::span<const Probes> outputs) const {
  if (node.kind() != OpKind::Slice) return false;
  const std::vector<Dim>& dims = graph_[node.inputs[0]].dims;
  const Probes& result = outputs[0];
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const auto at = static_cast<int>(axis);
    if (!dims[axis].is_known() && result[0].info.shape[at] == 0 && result[1].info.shape[at] == 0) return true;
  }
  return false;
}

bool Builder::infer_assuming(const Node& node, std::vector<Probes>& outputs) const {
  std::vector<Probes> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.inputs[i] != kNoValue) inputs[i] = probes_[node.inputs[i]];
  Assumptions assumptions(std::move(inputs),
                          [&](const std::vector<Probes>& assumed, std::vector<Probes>& found) {
                            return infer_with(node, &assumed, found).ok();
                          });
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const std::vector<Dim>& dims = graph_[node.inputs[i]].dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (!dims[axis].is_known() &&
          (strategy_ == kFree || dims[axis].symbol < 0 || !place_of(graph_, dims[axis].symbol)))
        assumptions.open(i, static_cast<int>(axis));
  }
  return assumptions.run(outputs);
}

Status Builder::infer_with(const Node& node, const std::vector<Probes>* assumed,
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

Dim Builder::name_extent(const Node& node, size_t output, int axis) {
  // As it was named before.
  if (const ValueId id = output < node.outputs.size() ? node.outputs[output] : kNoValue; id != kNoValue) {
    const Value& value = graph_[id];
    if (axis < value.rank())
      if (const Dim dim = value.dims[static_cast<size_t>(axis)]; dim.is_known() || dim.symbol >= 0)
        return dim;
  }
  // As all bodies call it, if the name is one of this graph.
  if (const std::string name = name_in_bodies(node, output, axis); !name.empty())
    for (size_t i = 0; i < graph_.symbols.size(); ++i)
      if (graph_.symbols[i].name == name) return {.symbol = static_cast<int32_t>(i)};
  // A name of its own.
  std::string name;
  for (size_t number = 0;; ++number) {
    name = text(node.name, '#', number);
    if (std::none_of(graph_.symbols.begin(), graph_.symbols.end(),
                     [&](const Symbol& symbol) { return symbol.name == name; }))
      break;
  }
  const int32_t symbol = graph_.symbol(name);
  add_symbol_probes();
  return {.symbol = symbol};
}

std::string Builder::name_in_bodies(const Node& node, size_t output, int axis) const {
  std::string name;
  const auto agrees = [&](const Graph& graph, ValueId id, int at) {
    if (id == kNoValue || at < 0 || at >= graph[id].rank()) return false;
    const int32_t symbol = graph[id].dims[static_cast<size_t>(at)].symbol;
    if (symbol < 0) return false;
    const std::string& found = graph.symbols[static_cast<size_t>(symbol)].name;
    if (name.empty()) name = found;
    return name == found;
  };
  size_t first = 0;  // the body's output that the node's first output belongs to
  if (node.kind() == OpKind::Loop) {
    first = 1;
    const bool carried = static_cast<int64_t>(output) < node.as<op::LoopAttributes>().carried;
    if (!carried) --axis;
    // Without iterations it is the initial value.
    if (carried && !agrees(graph_, node.inputs[ops::kLoopHead + output], axis)) return {};
  } else if (node.kind() != OpKind::If) {
    return {};
  }
  for (const Graph& body : node.bodies)
    if (!agrees(body, body.outputs[first + output], axis)) return {};
  return name;
}

void Builder::name_extents(const Node& node, std::vector<Probes>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    for (int axis = 0; axis < outputs[i][0].info.shape.rank(); ++axis) {
      if (outputs[i][0].info.shape[axis] != ops::kUnknownExtent) continue;
      const Dim dim = name_extent(node, i, axis);
      for (int probe = 0; probe < kProbes; ++probe)
        outputs[i][static_cast<size_t>(probe)].info.shape[axis] =
            dim.is_known() ? dim.extent : symbol_probe(dim.symbol, probe);
    }
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
    name_extents(node, outputs);
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
  const auto attempt = [&](int strategy) {
    strategy_ = strategy;
    choose_symbol_probes();
    return infer_all().ok() && infer(node, outputs).ok();
  };
  // From the present way on; first those that say most of the results.
  const auto attempt_all = [&](int begin, int end) {
    for (int step = 0; step < end - begin; ++step)
      if (attempt(begin + (std::max(before, begin) - begin + step) % (end - begin))) return true;
    return false;
  };
  if (attempt_all(kDistinct, kAllEqual)) return {};
  if (node.kind() == OpKind::Slice && !accept_empty_) {
    accept_empty_ = true;
    if (attempt(before)) return {};
  }
  if (fitted_ != nullptr && change_symbols(node) && attempt_all(kDistinct, kAllEqual)) return {};
  if (attempt_all(kAllEqual, kStrategies)) return {};
  strategy_ = before;
  choose_symbol_probes();
  RT_TRY(infer_all());
  return first;
}

bool Builder::change_symbols(const Node& node) {
  if (node.kind() == OpKind::Slice) return false;  // other extents than those at hand may fit as well
  const bool has_tuples = node.kind() == OpKind::GatherND || node.kind() == OpKind::ScatterND;
  // A group's channels are a part of all.
  int64_t groups = 1;
  if (node.kind() == OpKind::Conv) groups = node.as<op::ConvAttributes>().groups;
  if (node.kind() == OpKind::ConvInteger) groups = node.as<op::ConvIntegerAttributes>().groups;
  std::vector<int32_t> open;
  std::vector<Dim> dims;  // what the node's operands offer instead
  const auto collect = [&] {
    const auto add = [](auto& list, const auto& entry) {
      if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
    };
    open.clear();
    dims.clear();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue) continue;
      const size_t rank = graph_[input].dims.size();
      for (size_t axis = 0; axis < rank; ++axis) {
        const Dim& dim = graph_[input].dims[axis];
        if (has_tuples && i == 1 && axis + 1 == rank) continue;  // any length of a tuple up to x's rank fits
        if (dim.is_known()) {
          add(dims, dim);
          if (groups > 1) add(dims, Dim{.extent = dim.extent * groups});
        } else if (dim.symbol >= 0 && place_of(graph_, dim.symbol)) {
          add(open, dim.symbol);
          add(dims, dim);
        }
      }
      for (const auto& entry : known_entries(input))
        if (entry && *entry > 0) add(dims, Dim{.extent = *entry});
    }
    if (node.kind() == OpKind::Reshape) dims.clear();  // its product decides; 1 is always tried
  };
  const auto replaced = [&](std::span<const SymbolChange> changes, const Dim& dim) {
    for (const auto& [symbol, with] : changes)
      if (dim.symbol == symbol) return with;
    return dim;
  };
  const auto fits = [&](std::span<const SymbolChange> changes) {
    std::vector<Probes> assumed(node.inputs.size());
    for (size_t i = 0; i < assumed.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      assumed[i] = probes_[node.inputs[i]];
      const std::vector<Dim>& own = graph_[node.inputs[i]].dims;
      for (int probe = 0; probe < kProbes; ++probe)
        for (size_t axis = 0; axis < own.size(); ++axis)
          if (const Dim dim = replaced(changes, own[axis]); dim != own[axis])
            assumed[i][static_cast<size_t>(probe)].info.shape[static_cast<int>(axis)] =
                dim.is_known() ? dim.extent : symbol_probe(dim.symbol, probe);
    }
    std::vector<Probes> found;
    return infer_with(node, &assumed, found).ok();
  };
  for (const int strategy : {kDistinct, kDistinctLarge}) {
    strategy_ = strategy;
    choose_symbol_probes();
    if (!infer_all().ok()) continue;
    collect();
    const std::vector<SymbolChange> changes = compiler::fit_symbols(open, dims, fits);
    if (changes.empty()) continue;
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
                              " fits nothing else"));
    }
    return true;
  }
  return false;
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
  std::fill(node.outputs.begin(), node.outputs.end(), kNoValue);
  name_extents(node, outputs);
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
