#include "tools/compiler/report.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {
namespace {

/// "12.34 G"
std::string scaled(double number) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(kUnits); ++unit) number /= 1000;
  const auto hundredths = static_cast<int64_t>(std::llround(number * 100));
  return text(hundredths / 100, '.', hundredths / 10 % 10, hundredths % 10, ' ', kUnits[unit]);
}

std::string column(std::string part, size_t width) {
  if (part.size() < width) part.insert(0, width - part.size(), ' ');
  return part;
}

// Of symbols that inputs carry; the others follow.
void note_extents(const Graph& graph, std::span<const int64_t> numbers, GraphReport& report) {
  for (const ValueId input : graph.inputs)
    for (const Dim& dim : graph[input].dims) {
      if (dim.symbol < 0) continue;
      const auto index = static_cast<size_t>(dim.symbol);
      if (graph.symbols[index].definition.empty()) report.extents[graph.symbols[index].name] = numbers[index];
    }
}

// Symbols without a given extent get 1 where they count samples (the first axis of an input), `fallback`
// elsewhere.
Graph bound(const Graph& graph, GraphReport& report, const std::map<std::string, int64_t>& extents,
            int64_t fallback) {
  std::vector<int64_t> numbers(graph.symbols.size(), fallback);
  for (const ValueId input : graph.inputs) {
    const std::vector<Dim>& dims = graph[input].dims;
    if (!dims.empty() && dims[0].symbol >= 0) numbers[static_cast<size_t>(dims[0].symbol)] = 1;
  }
  Graph concrete = graph;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Symbol& symbol = graph.symbols[i];
    if (!symbol.definition.empty()) continue;
    if (const auto given = extents.find(symbol.name); given != extents.end()) numbers[i] = given->second;
  }
  note_extents(graph, numbers, report);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (const auto& definition = graph.symbols[i].definition; !definition.empty())
      numbers[i] = evaluate(definition, numbers).value_or(fallback);
  for (Value& value : concrete.values)
    for (Dim& dim : value.dims)
      if (dim.symbol >= 0) dim = {.extent = numbers[static_cast<size_t>(dim.symbol)]};
  // Bodies are written for the symbols; costs come from the pages.
  for (Node& node : concrete.nodes)
    if (!ops::is_control(node.kind())) node.bodies.clear();
  concrete.symbols.clear();
  return concrete;
}

void count_parameters(const Graph& graph, const std::vector<State>& states, GraphReport& report) {
  const std::vector<uint32_t> uses = use_counts(graph);
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph[id];
    const bool counts =
        value.role == Role::Constant || (value.role == Role::State && value.state < states.size() &&
                                         states[value.state].kind == StateKind::Parameter);
    const bool number = is_float(value.dtype) || value.dtype == DType::I8 || value.dtype == DType::U8;
    if (!counts || uses[id] == 0 || !number || value.rank() == 0) continue;
    report.parameters += static_cast<uint64_t>(value.info().elements());
    report.parameter_bytes += value.info().bytes();
  }
}

/// Whether each symbol follows from the extents of the graph's inputs; others depend on data.
std::vector<bool> symbols_of_inputs(const Graph& graph) {
  std::vector<bool> follows(graph.symbols.size());
  for (const ValueId input : graph.inputs)
    for (const Dim& dim : graph[input].dims)
      if (dim.symbol >= 0) follows[static_cast<size_t>(dim.symbol)] = true;
  // Definitions are made of symbols before them; another one counts as data.
  for (size_t i = 0; i < follows.size(); ++i) {
    const std::vector<ExtentTerm>& terms = graph.symbols[i].definition;
    if (!terms.empty())
      follows[i] = std::ranges::all_of(terms, [&](const ExtentTerm& term) {
        return term.op != ExtentOp::Symbol || follows[static_cast<size_t>(term.value)];
      });
  }
  return follows;
}

/// At least: values whose extents depend on data do not count.
uint64_t live_bytes(const Graph& graph, const Builder& builder) {
  std::vector<uint32_t> uses = use_counts(graph);
  const std::vector<bool> in_place = updated_in_place(graph, producers(graph));
  const std::vector<bool> follows = symbols_of_inputs(graph);
  const auto bytes = [&](ValueId id) {
    const bool known = std::ranges::all_of(graph[id].dims, [&](const Dim& dim) {
      return dim.is_known() || (dim.symbol >= 0 && follows[static_cast<size_t>(dim.symbol)]);
    });
    return in_place[id] || !known ? 0 : uint64_t{builder.example_info(id).bytes()};
  };
  uint64_t live = 0, most = 0;
  for (const Node& node : graph.nodes) {
    for (ValueId output : node.outputs) live += bytes(output);
    most = std::max(most, live);
    for (ValueId input : node.inputs)
      if (input != kNoValue && --uses[input] == 0 && graph[input].role == Role::Intermediate)
        live -= bytes(input);
    for (ValueId output : node.outputs)
      if (uses[output] == 0) live -= bytes(output);
  }
  return most;
}

// Everything in the report that needs concrete shapes.
GraphReport count_all(const Graph& concrete, const std::vector<State>& states, const Builder& builder,
                      GraphReport report) {
  report.nodes = concrete.nodes.size();
  count_parameters(concrete, states, report);
  report.live_bytes = live_bytes(concrete, builder);

  std::map<OpKind, OpSummary> by_kind;
  for (const Node& node : concrete.nodes) {
    const ops::Cost cost = builder.example_cost(node);
    OpSummary& summary = by_kind[node.kind()];
    summary.kind = node.kind();
    ++summary.count;
    summary.flops += cost.flops;
    summary.bytes += cost.bytes;
    report.flops += cost.flops;
    report.bytes += cost.bytes;
  }
  for (const auto& [kind, summary] : by_kind) report.ops.push_back(summary);
  std::stable_sort(report.ops.begin(), report.ops.end(), [](const OpSummary& a, const OpSummary& b) {
    return a.flops != b.flops ? a.flops > b.flops : a.count > b.count;
  });
  return report;
}

}  // namespace

Result<GraphReport> report_of(const Graph& graph, const std::vector<State>& states,
                              const std::map<std::string, int64_t>& extents) {
  for (const auto& [name, extent] : extents)
    if (extent < 1) return invalid_argument("dimension '", name, "': expected at least 1, found ", extent);
  // Image networks need a minimum size: the smallest of these at which every window fits.
  Status status;
  for (const int64_t fallback : {1, 32, 64, 224, 512}) {
    GraphReport report;
    Graph concrete = bound(graph, report, extents, fallback);
    const Builder builder(concrete, &states);
    status = builder.status();
    if (status.ok()) return count_all(concrete, states, builder, std::move(report));
  }
  // No single extent fits: those at which the symbols were inferred do.
  Graph symbolic = graph;
  const Builder inferred(symbolic, &states);
  if (!inferred.status().ok()) return status;
  GraphReport report;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < graph.symbols.size(); ++i)
    numbers.push_back(inferred.example_extent(static_cast<int32_t>(i)));
  note_extents(graph, numbers, report);
  return count_all(symbolic, states, inferred, std::move(report));
}

std::string GraphReport::text() const {
  std::string out;
  std::string at;
  for (const auto& [name, extent] : extents)
    append(at, librt::text(at.empty() ? " at " : ", ", name, '=', extent));
  append(out, librt::text("nodes       ", nodes, at, "\n"));
  append(out, librt::text("parameters  ", grouped(parameters), " (", bytes_text(parameter_bytes), ")\n"));
  append(out, librt::text("work        ", scaled(flops), "FLOP, ", scaled(bytes), "B moved, at least ",
                          bytes_text(live_bytes), " of intermediate values\n"));
  append(out, librt::text(column("operator", 20), column("count", 8), column("FLOP", 12),
                          column("B moved", 12), "\n"));
  for (const OpSummary& op : ops)
    append(out, librt::text(column(std::string(name_of(op.kind)), 20), column(librt::text(op.count), 8),
                            column(scaled(op.flops), 12), column(scaled(op.bytes), 12), "\n"));
  return out;
}

PrecisionReport precision_of(const Graph& graph) {
  PrecisionReport report;
  for (const Node& node : graph.nodes) {
    if (ops::is_control(node.kind())) {
      for (const Graph& body : node.bodies) {
        const PrecisionReport own = precision_of(body);
        report.f32 += own.f32;
        report.f16 += own.f16;
        report.bf16 += own.bf16;
        report.casts += own.casts;
      }
      continue;
    }
    const auto first = std::find_if(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return input != kNoValue && is_float(graph[input].dtype);
    });
    if (first == node.inputs.end()) continue;
    const DType dtype = graph[*first].dtype;
    if (node.kind() == OpKind::Cast && is_float(graph[node.outputs[0]].dtype)) {
      ++report.casts;
      continue;
    }
    report.f32 += dtype == DType::F32;
    report.f16 += dtype == DType::F16;
    report.bf16 += dtype == DType::BF16;
  }
  return report;
}

std::string PrecisionReport::text() const {
  std::string line;
  for (const auto& [name, count] : {std::pair{"f16", f16}, std::pair{"bf16", bf16}, std::pair{"f32", f32}})
    if (count > 0)
      append(line, line.empty() ? "" : ", ", count, count == 1 ? " node in " : " nodes in ", name);
  return librt::text(line, ", ", casts, casts == 1 ? " cast" : " casts");
}

}  // namespace librt::compiler
