// Builder: how probes are chosen, and inference with concrete extents under them. See builder.h for the idea.
#include <algorithm>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/shape/assume.h"
#include "tools/compiler/shape/fit_symbols.h"
#include "tools/compiler/shape/primes.h"
#include "tools/compiler/shape/symbols.h"

namespace librt::compiler {
namespace {

/// Values up to this many elements are computed while building; that is plenty for shapes, and cheap.
constexpr int64_t kFoldElements = 4096;
constexpr int64_t kFoldInputElements = 65536;

/// A shape operand has no more entries: one for each axis, or two (Pad).
constexpr int64_t kMostEntries = 2 * kMaxRank;

/// Where a symbol first appears among the graph's inputs.
struct AxisPosition {
  int axis = 0;
  int rank = 1;
};

/// The ways of choosing probes, in the order in which they are tried.
enum Strategy {
  kDistinct,       ///< small primes; multiples of 64 on the later axes of inputs of rank 4 and above (images)
  kDistinctLarge,  ///< multiples of 64 on every axis but the first
  kByAxis,         ///< symbols on the same axis are equal: lengths with different names that must agree
  kByAxisLarge,
  kSquare,     ///< all axes but the first are equal multiples of 64
  kHuge,       ///< all axes are long, as a TopK with k = 1000 needs
  kAllEqual,   ///< every symbol is the same small number
  kFree,       ///< as kDistinct, but extents that follow from two that must match are unknown
  kOneSample,  ///< the first axes are 1: models exported for one sample only
  kOneSampleLarge,
  kAllOne,
  kStrategies,
};

std::array<int64_t, kProbes> choose(int strategy, int symbol, std::optional<AxisPosition> at) {
  // A data-dependent extent is unrelated to all others: primes that no input has.
  constexpr int kInputPrimes = 64;
  if (!at) return prime_pair(kInputPrimes + symbol, 1);
  const AxisPosition position = *at;
  const bool first = position.axis == 0;
  const auto one = std::array<int64_t, kProbes>{1, 1};
  switch (strategy) {
    case kFree:
    case kDistinct: return prime_pair(symbol, position.rank >= 4 && !first ? 64 : 1);
    case kDistinctLarge: return prime_pair(symbol, first ? 1 : 64);
    case kByAxis: return prime_pair(position.axis, position.rank >= 4 && !first ? 64 : 1);
    case kByAxisLarge: return prime_pair(position.axis, first ? 1 : 64);
    case kHuge: return prime_pair(symbol, 1024);
    case kSquare: return first ? prime_pair(0, 1) : prime_pair(1, 64);
    case kAllEqual: return prime_pair(0, 1);
    case kOneSample: return first ? one : prime_pair(symbol + 1, position.rank >= 4 ? 64 : 1);
    case kOneSampleLarge: return first ? one : prime_pair(position.axis, 64);
    default: return one;
  }
}

/// Brings a pair within the symbol's upper bound, keeping it a multiple of a power of two if it was.
std::array<int64_t, kProbes> within(std::array<int64_t, kProbes> pair, int64_t bound) {
  if (bound <= 0) return pair;
  while (std::max(pair[0], pair[1]) > bound && pair[0] % 2 == 0 && pair[1] % 2 == 0) {
    pair[0] /= 2;
    pair[1] /= 2;
  }
  if (std::max(pair[0], pair[1]) > bound) pair = {std::max<int64_t>(bound - 1, 1), bound};
  return pair;
}

/// nullopt for a data-dependent extent.
std::optional<AxisPosition> position_of(const Graph& graph, int32_t symbol) {
  for (ValueId input : graph.inputs) {
    const Value& value = graph.values[input];
    for (int axis = 0; axis < value.rank(); ++axis)
      if (value.dims[static_cast<size_t>(axis)].symbol == symbol)
        return AxisPosition{.axis = axis, .rank = value.rank()};
  }
  return std::nullopt;
}

/// The symbols that a symbol's name adds up: "past_sequence_length + sequence_length", or "total_x" for
/// "past_x" + "x". Integers in a name ("past + 1") go to `constant`. Empty: not a sum.
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

void Builder::choose_symbol_probes() {
  for (std::vector<int64_t>& extents : symbol_probes_) extents.clear();
  from_data_.clear();
  add_symbol_probes();
}

void Builder::add_symbol_probes() {
  const size_t known = symbol_probes_[0].size();
  for (size_t i = known; i < graph_.symbols.size(); ++i) {
    const auto symbol = static_cast<int32_t>(i);
    const auto pair = within(choose(strategy_, symbol, position_of(graph_, symbol)), graph_.symbols[i].bound);
    for (size_t probe = 0; probe < kProbes; ++probe) symbol_probes_[probe].push_back(pair[probe]);
  }
  for (size_t i = known; i < graph_.symbols.size(); ++i) {
    const Symbol& symbol = graph_.symbols[i];
    if (symbol.definition.empty()) continue;
    for (std::vector<int64_t>& extents : symbol_probes_)
      extents[i] = evaluate(symbol.definition, extents).value_or(extents[i]);
  }
}

bool Builder::define_sums() {
  bool found = false;
  for (Symbol& symbol : graph_.symbols) {
    if (!symbol.definition.empty()) continue;
    int64_t constant = 0;
    const std::vector<int32_t> terms = terms_of(graph_, symbol.name, constant);
    const bool are_free = std::all_of(terms.begin(), terms.end(), [&](int32_t term) {
      return graph_.symbols[static_cast<size_t>(term)].definition.empty();
    });
    if (terms.empty() || !are_free) continue;
    found = true;
    symbol.definition.push_back({ExtentOp::Constant, constant});
    for (const int32_t term : terms) {
      symbol.definition.push_back({ExtentOp::Symbol, term});
      symbol.definition.push_back({ExtentOp::Add, 0});
    }
  }
  return found;
}

bool Builder::depends_on_data() const {
  return std::find(from_data_.begin(), from_data_.end(), true) != from_data_.end();
}

int64_t Builder::symbol_probe(int32_t symbol, int probe) const {
  const auto index = static_cast<size_t>(symbol);
  const std::vector<int64_t>& extents = symbol_probes_[static_cast<size_t>(probe)];
  if (index < extents.size()) return extents[index];
  return choose(strategy_, symbol, std::nullopt)[static_cast<size_t>(probe)];
}

void Builder::set_source(ValueId id) {
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

Status Builder::infer_probe(const Node& node, int probe, const std::vector<Probes>* assumed,
                            std::vector<ProbeValue>& outputs) const {
  const ops::Page* page = ops::page_of(node.kind());
  if (page == nullptr)
    return unsupported(describe(node), ": this build does not know the operator; convert with a newer one");
  RT_TRY(check_node(graph_, node, *page));

  std::vector<Operand> operands(node.inputs.size());
  std::vector<ConstTensorView> views(node.inputs.size());
  bool foldable = !page->impure && (page->run != nullptr || ops::can_evaluate(node, ops::host_value));
  // A shape operand is unknown, or its known value may not fit the made-up extents of the probes.
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
      return unsupported(describe(view.node), ": the length of input ", i,
                         " depends on the extents of the inputs, so the rank of the result is unknown");
    entries[i] = entries_of(inputs[i], probe);
  }
  return infer_unknown(view, entries, inputs[0] != kNoValue ? graph_[inputs[0]] : kNone, infos)
      .in(describe(view.node));
}

Entries Builder::entries_of(ValueId id, int probe) const {
  const Known& known = known_[id];
  if (!known.has_elements || known.elements.size() > static_cast<size_t>(kMostEntries)) {
    const int64_t count = probes_[id][0].info.elements();
    return Entries(known.is_static() && count <= kMostEntries ? static_cast<size_t>(count) : 0);
  }
  Entries entries;
  for (const Extent& element : known.elements)
    entries.push_back(extents_.evaluate(element, symbol_probes_[static_cast<size_t>(probe)]));
  return entries;
}

Status Builder::infer(const Node& node, std::vector<Probes>& outputs) const {
  Status plain = infer_with(node, nullptr, outputs);
  if (plain.ok() && !accept_empty_ && is_emptied(node, outputs))
    return unsupported(describe(node), ": the slice is empty at the extents that were tried");
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
      if (!dims[axis].is_known() && (strategy_ == kFree || !position_of(graph_, dims[axis].symbol)))
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

Status Builder::infer_under_any_probes() {
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

void Builder::infer_again() {
  extents_ = {};
  symbol_extents_.clear();
  derived_.clear();
  strategy_ = kDistinct;
  choose_symbol_probes();
  fail(infer_under_any_probes());
}

Status Builder::infer_somehow(const Node& node, std::vector<Probes>& outputs) {
  Status first = infer(node, outputs);
  if (first.ok() || graph_.symbols.empty()) return first;
  const std::vector<Demand> demands = demands_of(node);
  if (fitted_ != nullptr && meet_demands(node, demands)) return infer_somehow(node, outputs);
  const int before = strategy_;
  const auto attempt = [&](int strategy) {
    strategy_ = strategy;
    choose_symbol_probes();
    return infer_all().ok() && infer(node, outputs).ok();
  };
  // Starting with the current strategy; those that determine most of the results come first.
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

bool Builder::change_symbols(const Node& node) {
  if (node.kind() == OpKind::Slice) return false;  // other extents than those at hand may fit as well
  const bool has_tuples = node.kind() == OpKind::GatherND || node.kind() == OpKind::ScatterND;
  // A group has only a fraction of all channels.
  int64_t groups = 1;
  if (node.kind() == OpKind::Conv) groups = node.as<op::ConvAttributes>().groups;
  if (node.kind() == OpKind::ConvInteger) groups = node.as<op::ConvIntegerAttributes>().groups;
  std::vector<int32_t> open;
  std::vector<Dim> dims;  // candidate replacements from the node's operands
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
        } else if (dim.symbol >= 0 && position_of(graph_, dim.symbol)) {
          add(open, dim.symbol);
          add(dims, dim);
        }
      }
      for (const auto& entry : known_entries(input))
        if (entry && *entry > 0) add(dims, Dim{.extent = *entry});
    }
    if (node.kind() == OpKind::Reshape) dims.clear();  // only their product matters; 1 is always tried
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
                              " accepts nothing else"));
    }
    return true;
  }
  return false;
}

}  // namespace librt::compiler
