#include "tools/rtconvert/keep_accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "runtime/graph/node_view.h"
#include "tools/common/compare.h"
#include "tools/compiler/half.h"
#include "tools/compiler/writer.h"
#include "tools/rtconvert/run_session.h"

namespace rt::convert {
namespace {

using tools::Array;

/// The largest of the outputs' errors.
double error_of(std::span<const Array> got, std::span<const Array> want) {
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    tools::RelativeError error;
    error.add(got[i], want[i]);
    largest = std::max(largest, error.value());
  }
  return largest;
}

class Trial {
 public:
  Trial(const ModelGraph& model, std::vector<Array> inputs) : model_(model), inputs_(std::move(inputs)) {}

  /// Outputs of the entry `infer` with rounding to these types.
  Result<std::vector<Array>> run(const std::vector<DType>& types) const {
    ModelGraph model;
    model.states = model_.states;
    RT_ASSIGN(Graph graph, compiler::rounded(*model_.entry("infer"), model_.states, types));
    RT_TRY(compiler::expand_composites(graph, model.states));
    model.entries.push_back({.name = "infer", .graph = std::move(graph)});
    RT_ASSIGN(const std::vector<std::byte> bytes, compiler::serialize_model(model));
    std::string error;
    auto outputs = run_session(bytes, "cpu", false, inputs_, error);
    if (!outputs) return Status::make(Code::Device, "--keep-accuracy: session on cpu: ", error);
    return std::move(*outputs);
  }

 private:
  const ModelGraph& model_;
  std::vector<Array> inputs_;
};

}  // namespace

Result<AccuracyReport> keep_accuracy(const ModelGraph& model, const compiler::PipelineOptions& pipeline,
                                     double tolerance, const VerifyOptions& options) {
  const Graph* graph = model.entry("infer");
  if (graph == nullptr) return invalid_argument("--keep-accuracy: the model has no entry 'infer'");
  RT_ASSIGN(std::vector<Array> inputs, make_inputs(model, options));
  const Trial trial(model, std::move(inputs));
  const std::vector<DType> exact(graph->nodes.size(), DType::F32);
  const std::vector<DType> all = compiler::node_types(
      *graph, {.states = model.states, .dtype = pipeline.precision, .keep_fp32 = pipeline.keep_fp32});
  RT_ASSIGN(const std::vector<Array> want, trial.run(exact));
  const auto error_with = [&](const std::vector<DType>& types) -> Result<double> {
    RT_ASSIGN(const std::vector<Array> got, trial.run(types));
    return error_of(got, want);
  };
  AccuracyReport report;
  RT_ASSIGN(report.before, error_with(all));
  report.after = report.before;
  if (report.before <= tolerance) return report;

  std::vector<NodeId> order;
  std::vector<double> errors(all.size());
  for (NodeId id = 0; id < all.size(); ++id) {
    if (all[id] == DType::F32) continue;
    std::vector<DType> alone = exact;
    alone[id] = all[id];
    RT_ASSIGN(errors[id], error_with(alone));
    order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return errors[a] > errors[b]; });
  for (const NodeId id : order)
    report.nodes.push_back({graph->nodes[id].name, std::string(op_name(graph->nodes[id])), errors[id]});

  // The fewest that suffice, by halving; keeping all of them is exact.
  const auto error_keeping = [&](size_t count) {
    std::vector<DType> types = all;
    for (size_t i = 0; i < count; ++i) types[order[i]] = DType::F32;
    return error_with(types);
  };
  size_t fails = 0, suffices = order.size();
  report.after = 0;
  while (suffices - fails > 1) {
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
  if (kept == 0) return errors;
  std::snprintf(errors, sizeof errors, "error of the outputs %.2g before, %.2g now", before, after);
  constexpr size_t kMost = 8;
  std::string names;
  for (size_t i = 0; i < std::min(kept, kMost); ++i) append(names, i > 0 ? ", " : "", nodes[i].name);
  if (kept > kMost) append(names, " and ", kept - kMost, " more");
  return rt::text("kept ", kept, " of ", nodes.size(), " nodes in f32: ", names, "; ", errors);
}

}  // namespace rt::convert
