#include "tools/rtbench/workload.h"

#include "runtime/model/reader.h"
#include "runtime/session/prepare/shapes.h"
#include "tools/compiler/report.h"

namespace librt::bench {
namespace {

const Graph* entry_graph(const ModelGraph& model, const BenchModel& bench) {
  if (const Graph* graph = model.entry(bench.entry.empty() ? "infer" : bench.entry)) return graph;
  return bench.entry.empty() && model.entries.size() == 1 ? &model.entries[0].graph : nullptr;
}

}  // namespace

std::optional<ModelWork> model_work(const BenchModel& model, const std::map<std::string, int64_t>& extents,
                                    std::string& error) {
  ModelWork made;
  const auto make = [&]() -> Status {
    RT_ASSIGN(ModelGraph loaded, load_model(model.path));
    made.graph = std::make_shared<const ModelGraph>(std::move(loaded));
    const Graph* graph = entry_graph(*made.graph, model);
    if (graph == nullptr) return invalid_argument("there is no entry to run");
    std::vector<TensorInfo> inputs = assumed_inputs(*graph);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<Dim>& dims = (*graph)[graph->inputs[i]].dims;
      Shape shape = inputs[i].shape;
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        if (dims[axis].is_known() || dims[axis].symbol < 0) continue;
        const std::string& name = graph->symbols[static_cast<size_t>(dims[axis].symbol)].name;
        if (const auto given = extents.find(name); given != extents.end())
          shape[static_cast<int>(axis)] = given->second;
        made.extents[name] = shape[static_cast<int>(axis)];
      }
      inputs[i].shape = shape;
    }
    RT_TRY(check_inputs(*graph, inputs));
    const std::string precision = is_quantized(model.precision) ? std::string() : model.precision;
    RT_ASSIGN(made.work, workload_of(*graph, made.graph->states, inputs, precision));
    const auto report = compiler::report_of(*graph, made.graph->states, made.extents);
    if (report.ok()) made.live_bytes = static_cast<double>(report->live_bytes);
    return {};
  };
  if (Status status = make(); !status.ok()) {
    error = model.name + ": " + status.message();
    return std::nullopt;
  }
  return made;
}

std::string batch_symbol_of(const BenchModel& model, int64_t& fixed, std::string& error) {
  fixed = 1;
  const auto loaded = load_model(model.path);
  if (!loaded.ok()) {
    error = loaded.status().message();
    return {};
  }
  const Graph* graph = entry_graph(*loaded, model);
  if (graph == nullptr) return {};
  for (const ValueId input : graph->inputs) {
    const Value& value = (*graph)[input];
    if (value.dims.empty()) continue;
    fixed = value.dims[0].extent;
    return value.dims[0].symbol < 0 ? std::string()
                                    : graph->symbols[static_cast<size_t>(value.dims[0].symbol)].name;
  }
  return {};
}

}  // namespace librt::bench
