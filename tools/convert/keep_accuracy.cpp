#include "tools/convert/keep_accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>

#include "runtime/graph/node_view.h"
#include "tools/compiler/name_list.h"
#include "tools/compiler/quantize/half.h"
#include "tools/compiler/report.h"
#include "tools/compiler/writer.h"
#include "tools/convert/run_session.h"
#include "tools/data/compare.h"

namespace librt::convert {
namespace {

using tools::Array;

/// The largest error of an output.
double error_of(std::span<const Array> got, std::span<const Array> want) {
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    tools::RelativeError error;
    error.add(got[i], want[i]);
    largest = std::max(largest, error.value());
  }
  return largest;
}

using TypesOf = std::function<std::vector<DType>(const Graph&)>;

/// What the nodes of a graph compute in by the pipeline's options; refers to the arguments.
TypesOf types_by(const ModelGraph& model, const compiler::PipelineOptions& pipeline) {
  return [&model, &pipeline](const Graph& graph) {
    return compiler::node_types(
        graph, {.states = model.states, .dtype = pipeline.precision, .keep_fp32 = pipeline.keep_fp32});
  };
}

class Trial {
 public:
  /// of_body: the types of the nodes of branches and loops' bodies.
  Trial(const ModelGraph& model, std::vector<Array> inputs, TypesOf of_body = {})
      : model_(model), inputs_(std::move(inputs)), of_body_(std::move(of_body)) {}

  /// Outputs of the unchanged entry `infer`.
  Result<std::vector<Array>> run() const {
    ModelGraph model;
    model.states = model_.states;
    Graph graph = *model_.entry("infer");
    RT_TRY(compiler::expand_composites(graph, model.states));
    return run_graph(std::move(model), std::move(graph));
  }

  /// Outputs of the entry `infer` with rounding to these types, also in bodies or there in f32.
  Result<std::vector<Array>> run(const std::vector<DType>& types, bool in_bodies) const {
    ModelGraph model;
    model.states = model_.states;
    const auto exact = [](const Graph& body) { return std::vector<DType>(body.nodes.size(), DType::F32); };
    RT_ASSIGN(Graph graph,
              compiler::rounded(*model_.entry("infer"), model_.states, types, in_bodies ? of_body_ : exact));
    RT_TRY(compiler::expand_composites(graph, model.states));
    return run_graph(std::move(model), std::move(graph));
  }

 private:
  Result<std::vector<Array>> run_graph(ModelGraph model, Graph graph) const {
    model.entries.push_back({.name = "infer", .graph = std::move(graph)});
    RT_ASSIGN(const std::vector<std::byte> bytes, compiler::serialize_model(model));
    std::string error;
    auto outputs = run_session(bytes, "cpu", false, inputs_, error);
    if (!outputs) return Status::make(Code::Device, "measuring the outputs: session on cpu: ", error);
    return std::move(*outputs);
  }

  const ModelGraph& model_;
  std::vector<Array> inputs_;
  TypesOf of_body_;
};

}  // namespace

Result<AccuracyReport> keep_accuracy(const ModelGraph& model, const compiler::PipelineOptions& pipeline,
                                     double tolerance, const VerifyOptions& options) {
  const Graph* graph = model.entry("infer");
  if (graph == nullptr) return invalid_argument("--keep-accuracy: the model has no entry 'infer'");
  RT_ASSIGN(std::vector<Array> inputs, make_inputs(model, options));
  const TypesOf types_of = types_by(model, pipeline);
  const Trial trial(model, std::move(inputs), types_of);
  const std::vector<DType> exact(graph->nodes.size(), DType::F32), all = types_of(*graph);
  RT_ASSIGN(const std::vector<Array> want, trial.run(exact, false));
  const auto error_with = [&](const std::vector<DType>& types, bool in_bodies = true) -> Result<double> {
    RT_ASSIGN(const std::vector<Array> got, trial.run(types, in_bodies));
    return error_of(got, want);
  };
  AccuracyReport report;
  report.wanted = tolerance;
  RT_ASSIGN(report.before, error_with(all));
  report.after = report.before;
  if (report.before <= tolerance) return report;

  std::vector<NodeId> order;
  std::vector<double> errors(all.size());
  for (NodeId id = 0; id < all.size(); ++id) {
    if (all[id] == DType::F32) continue;
    RT_TRY(compiler::report_progress(options.progress, "measure", id, all.size()));
    std::vector<DType> alone = exact;
    alone[id] = all[id];
    RT_ASSIGN(errors[id], error_with(alone, false));
    order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return errors[a] > errors[b]; });
  for (const NodeId id : order)
    report.nodes.push_back({graph->nodes[id].name, std::string(op_name(graph->nodes[id])), errors[id]});

  // Bisection for the smallest sufficient count. Keeping all of them is exact, but for bodies.
  const auto error_keeping = [&](size_t count) {
    std::vector<DType> types = all;
    for (size_t i = 0; i < count; ++i) types[order[i]] = DType::F32;
    return error_with(types);
  };
  size_t fails = 0, suffices = order.size();
  RT_ASSIGN(report.after, error_keeping(suffices));
  while (suffices - fails > 1) {
    RT_TRY(compiler::report_progress(options.progress, "measure", all.size(), all.size()));
    const size_t middle = fails + (suffices - fails) / 2;
    RT_ASSIGN(const double error, error_keeping(middle));
    if (error <= tolerance) {
      suffices = middle;
      report.after = error;
    } else {
      fails = middle;
    }
  }
  report.kept = suffices;
  return report;
}

// About a second of compute, and memory for copies of the weights.
constexpr double kMostOperations = 3e10;
constexpr uint64_t kMostWeightBytes = uint64_t{1} << 30;

Result<std::string> too_costly(const ModelGraph& model, std::span<const Array> inputs) {
  const Graph& graph = *model.entry("infer");
  std::map<std::string, int64_t> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Dim>& dims = graph[graph.inputs[i]].dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (dims[axis].symbol >= 0)
        extents[graph.symbols[static_cast<size_t>(dims[axis].symbol)].name] = inputs[i].dims[axis];
  }
  RT_ASSIGN(const compiler::GraphReport report, compiler::report_of(graph, model.states, extents));
  if (report.flops > kMostOperations)
    return text("a run takes ", grouped(static_cast<uint64_t>(report.flops)), " operations");
  if (report.parameter_bytes > kMostWeightBytes)
    return text("the weights take ", bytes_text(report.parameter_bytes));
  return std::string();
}

namespace {

/// Why the outputs cannot be compared; empty if they can.
std::string useless(std::span<const Array> outputs) {
  bool any = false;
  for (const Array& output : outputs) {
    if (!is_float(output.type)) continue;
    const size_t count = output.bytes.size() / size_of(output.type);
    for (size_t i = 0; i < count; ++i)
      if (!std::isfinite(tools::element_of(output, i)))
        return "in f32 the outputs are not finite for these inputs; --input NAME=FILE gives others";
    any = any || count > 0;
  }
  return any ? "" : "there is no float output";
}

template <class Measure>
PrecisionCost cost_of(const ModelGraph& exact, const VerifyOptions& options, bool always,
                      const Measure& measure) {
  const auto run = [&]() -> Result<PrecisionCost> {
    RT_ASSIGN(std::vector<Array> inputs, make_inputs(exact, options));
    PrecisionCost cost;
    if (!always) {
      RT_ASSIGN(cost.why, too_costly(exact, inputs));
      if (!cost.why.empty()) cost.why += "; --accuracy always measures it";
    }
    if (!cost.why.empty()) return cost;
    RT_ASSIGN(const std::vector<Array> want, Trial(exact, inputs).run());
    cost.why = useless(want);
    if (!cost.why.empty()) return cost;
    RT_ASSIGN(const std::vector<Array> got, measure(std::move(inputs)));
    cost.error = error_of(got, want);
    return cost;
  };
  auto cost = run();
  return cost.ok() ? std::move(*cost) : PrecisionCost{.why = cost.status().message()};
}

}  // namespace

PrecisionCost cost_of_16_bits(const ModelGraph& model, const compiler::PipelineOptions& pipeline,
                              const VerifyOptions& options, bool always) {
  const TypesOf types_of = types_by(model, pipeline);
  return cost_of(model, options, always, [&](std::vector<Array> inputs) {
    return Trial(model, std::move(inputs), types_of).run(types_of(*model.entry("infer")), true);
  });
}

PrecisionCost cost_of_change(const ModelGraph& exact, const ModelGraph& changed, const VerifyOptions& options,
                             bool always) {
  return cost_of(exact, options, always,
                 [&](std::vector<Array> inputs) { return Trial(changed, std::move(inputs)).run(); });
}

std::string exactly(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::string AccuracyReport::text() const {
  char errors[96];
  std::snprintf(errors, sizeof errors, "error of the outputs %.2g", before);
  const char* why = after > wanted ? "; nodes of branches and loops' bodies are not chosen" : "";
  if (kept == 0) return librt::text(errors, why);
  std::snprintf(errors, sizeof errors, "error of the outputs %.2g before, %.2g now", before, after);
  std::vector<std::string> names;
  for (size_t i = 0; i < kept; ++i) names.push_back(nodes[i].name);
  return librt::text("kept ", kept, " of ", nodes.size(), " nodes in f32: ", compiler::listed(names, 8), "; ",
                     errors, why);
}

}  // namespace librt::convert
