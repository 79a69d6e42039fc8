#include "tools/convert/calibration_run.h"

#include <algorithm>
#include <cmath>

#include "tools/compiler/pipeline.h"
#include "tools/compiler/writer.h"
#include "tools/convert/calibration_range.h"

namespace librt::convert {
namespace {

using compiler::Observed;
using compiler::QuantizationChoice;

/// The graph with these tensors as its outputs, under unique names.
Graph with_outputs(const Graph& graph, std::span<const ValueId> values) {
  Graph copy = graph;
  for (size_t i = 0; i < values.size(); ++i)
    if (copy[values[i]].role != Role::Input) copy[values[i]].name = text("observed ", i);
  copy.outputs.assign(values.begin(), values.end());
  return copy;
}

}  // namespace

Status for_each_output(const ModelGraph& model, Graph graph, const CalibrationData& data, size_t runs,
                       const OnOutput& on_output) {
  ModelGraph copy;
  copy.states = model.states;
  copy.entries.push_back({.name = "infer", .graph = std::move(graph)});
  RT_TRY(compiler::optimize(copy, {.disabled = {"precision"}, .progress = data.progress}, nullptr));
  RT_ASSIGN(const std::vector<std::byte> bytes, compiler::serialize_model(copy));
  std::string error;
  const auto runner = Runner::open(bytes, "cpu", false, error);
  if (runner == nullptr) return Status(Code::Device, "--calibrate: " + error);
  for (size_t run = 0; run < runs; ++run) {
    RT_TRY(compiler::report_progress(data.progress, "calibrate", run, runs));
    if (!runner->run(data.run(run), error)) return Status(Code::Device, "--calibrate: " + error);
    for (size_t i = 0; i < runner->output_count(); ++i) {
      const auto output = runner->output(i, error);
      if (!output) return Status(Code::Device, "--calibrate: " + error);
      RT_TRY(on_output(run, i, *output));
    }
  }
  return {};
}

std::span<const float> floats(const Runner::Output& output) {
  return {reinterpret_cast<const float*>(output.bytes.data()), output.bytes.size() / sizeof(float)};
}

Status Observer::run(const QuantizationChoice& choice) {
  std::vector<ValueId> values = choice.values;
  for (const NodeId id : choice.matmuls) values.push_back(graph_.nodes[id].inputs[0]);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::erase_if(values, [&](ValueId value) { return observed.contains(value); });
  if (values.empty()) return {};
  RT_TRY(observe_extremes(values));
  std::erase_if(values, [&](ValueId value) { return infinite.contains(value); });
  if (calibration_ == "minmax") return {};
  return clip_ranges(values);
}

Status Observer::observe_extremes(const std::vector<ValueId>& values) {
  std::vector<double> count(values.size(), 0);
  const auto observe = [&](size_t, size_t i, const Runner::Output& output) -> Status {
    Observed& seen = observed[values[i]];
    const auto channels = output.dims.empty() ? size_t{1} : static_cast<size_t>(output.dims.back());
    seen.mean.resize(channels, 0);
    const std::span<const float> numbers = floats(output);
    for (size_t k = 0; k < numbers.size(); ++k) {
      const Value& value = graph_[values[i]];
      if (std::isnan(numbers[k]) || (std::isinf(numbers[k]) && value.role == Role::Input))
        return invalid_argument("--calibrate: '", value.name, "' has a value that is not finite");
      if (std::isinf(numbers[k])) infinite.insert(values[i]);
      seen.range.low = std::min(seen.range.low, numbers[k]);
      seen.range.high = std::max(seen.range.high, numbers[k]);
      seen.mean[k % channels] += static_cast<double>(numbers[k]);
    }
    const size_t positions = numbers.size() / std::max<size_t>(channels, 1);
    count[i] += static_cast<double>(positions);
    return {};
  };
  RT_TRY(for_each_output(model_, with_outputs(graph_, values), data_, data_.runs(), observe));
  for (size_t i = 0; i < values.size(); ++i)
    for (double& mean : observed[values[i]].mean) mean /= std::max(count[i], 1.0);
  return {};
}

Status Observer::clip_ranges(const std::vector<ValueId>& values) {
  std::vector<Histogram> histograms(values.size());
  for (size_t i = 0; i < values.size(); ++i) histograms[i].range = observed[values[i]].range;
  RT_TRY(for_each_output(model_, with_outputs(graph_, values), data_, data_.runs(),
                         [&](size_t, size_t i, const Runner::Output& output) -> Status {
                           histograms[i].add(floats(output));
                           return {};
                         }));
  for (size_t i = 0; i < values.size(); ++i)
    observed[values[i]].range = calibration_ == "entropy" ? entropy_range(histograms[i])
                                                          : percentile_range(histograms[i], percentile_);
  return {};
}

}  // namespace librt::convert
