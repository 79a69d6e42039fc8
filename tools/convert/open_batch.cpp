#include "tools/convert/open_batch.h"

#include <cmath>
#include <cstdio>

#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/train_steps.h"
#include "tools/compiler/writer.h"
#include "tools/convert/keep_accuracy.h"
#include "tools/convert/run_session.h"
#include "tools/convert/verify_extents.h"
#include "tools/data/compare.h"
#include "tools/onnx/import.h"

namespace librt::convert {
namespace {

using tools::Array;

constexpr double kLargestDifference = 3e-3;
constexpr size_t kSamples = 3;  // of two, a band matrix along the batch may keep all

/// What makes results of the same sample differ from run to run, or with its batch, on purpose.
std::string reason_to_differ(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.kind() == OpKind::RandomUniform || node.kind() == OpKind::RandomNormal)
      return text("node '", node.name, "' draws random numbers");
    if (compiler::is_batch_norm(node) && compiler::in_training_mode(graph, node))
      return text("node '", node.name, "' normalizes over the batch");
  }
  for (const ValueId id : graph.inputs)
    for (size_t axis = 1; axis < graph[id].dims.size(); ++axis)
      if (onnx::is_opened_batch(graph, graph[id].dims[axis]))
        return text("axis ", axis, " of input '", graph[id].name, "' is the batch as well");
  return {};
}

/// Row `i` of the inputs that have the batch; the others whole.
std::vector<Array> sample(const Graph& graph, const std::vector<Array>& all, size_t i) {
  std::vector<Array> inputs = all;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<Dim>& dims = graph[graph.inputs[k]].dims;
    if (dims.empty() || !onnx::is_opened_batch(graph, dims[0])) continue;
    const size_t bytes = inputs[k].bytes.size() / kSamples;
    const auto first = all[k].bytes.begin() + static_cast<ptrdiff_t>(i * bytes);
    inputs[k].bytes.assign(first, first + static_cast<ptrdiff_t>(bytes));
    inputs[k].dims[0] = 1;
  }
  return inputs;
}

Result<std::vector<Array>> run(Runner& runner, const std::vector<Array>& inputs) {
  std::string error;
  if (!runner.run(inputs, error)) return invalid_argument(error);
  std::vector<Array> outputs(runner.output_count());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto output = runner.output(i, error);
    if (!output) return invalid_argument(error);
    outputs[i].type = output->type;
    outputs[i].dims = output->dims;
    outputs[i].bytes.assign(output->bytes.begin(), output->bytes.end());
  }
  return outputs;
}

/// The norm of the difference over that of `want`; infinities and NaN count where only one has them.
double difference(const Array& got, size_t offset, const Array& want) {
  double difference = 0, norm = 0;
  const size_t count = want.bytes.size() / size_of(want.type);
  for (size_t i = 0; i < count; ++i) {
    const double w = tools::element_of(want, i), g = tools::element_of(got, offset + i);
    if (std::isfinite(w) != std::isfinite(g)) return HUGE_VAL;
    if (!std::isfinite(w)) continue;
    difference += (g - w) * (g - w);
    norm += w * w;
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

/// What is wrong with output `k` of all samples at once, given the outputs of each.
std::string problem(const Array& all, const std::vector<std::vector<Array>>& each, size_t k) {
  std::vector<int64_t> expected = each[0][k].dims;
  bool fits = !expected.empty();
  for (size_t i = 0; i < each.size(); ++i) fits = fits && each[i][k].dims == each[0][k].dims;
  if (fits) expected[0] *= static_cast<int64_t>(each.size());
  if (!fits || all.dims != expected)
    return text("expected ", tools::describe(each[0][k]), " for each, found ", tools::describe(all));
  double apart = 0;
  const size_t count = each[0][k].bytes.size() / size_of(all.type);
  for (size_t i = 0; i < each.size(); ++i) apart = std::max(apart, difference(all, i * count, each[i][k]));
  if (apart <= kLargestDifference) return {};
  char number[32];
  std::snprintf(number, sizeof number, "%.2g", apart);
  return text("its values change by ", number, " of their norm with the other samples");
}

}  // namespace

Result<std::string> check_open_batch(const ModelGraph& model, const VerifyOptions& options) {
  const Graph& graph = *model.entry("infer");
  if (std::string reason = reason_to_differ(graph); !reason.empty()) return reason;
  auto cases = extent_cases(model, options.seed);
  if (!cases.ok()) return std::string(cases.status().message());
  std::vector<TensorInfo> infos = std::move(cases->back().inputs);
  for (size_t i = 0; i < infos.size(); ++i) {
    const std::vector<Dim>& dims = graph[graph.inputs[i]].dims;
    if (!dims.empty() && onnx::is_opened_batch(graph, dims[0])) infos[i].shape[0] = kSamples;
  }
  VerifyOptions random = options;
  random.inputs.clear();
  RT_ASSIGN(const std::vector<Array> inputs, make_inputs(model, random, infos));
  RT_ASSIGN(std::string costly, too_costly(model, inputs));
  if (!costly.empty()) return costly;

  RT_TRY(compiler::report_progress(options.progress, "verify", 0, 0));
  ModelGraph copy = model;
  RT_TRY(compiler::optimize(copy, {}, nullptr));
  RT_ASSIGN(const std::vector<std::byte> file, compiler::serialize_model(copy));
  std::string error;
  const std::unique_ptr<Runner> runner = Runner::open(file, "cpu", false, error);
  if (runner == nullptr) return error;
  std::vector<std::vector<Array>> each;
  for (size_t i = 0; i < kSamples; ++i) {
    auto outputs = run(*runner, sample(graph, inputs, i));
    if (!outputs.ok()) return std::string(outputs.status().message());
    each.push_back(std::move(*outputs));
  }
  const auto all = run(*runner, inputs);
  if (!all.ok())
    return invalid_argument("the model runs with a batch of 1, but not of ", kSamples, ": ",
                            all.status().message(),
                            "\n  export it with a dynamic batch, or leave out --open-batch");
  for (size_t k = 0; k < all->size(); ++k)
    if (const std::string found = problem((*all)[k], each, k); !found.empty())
      return invalid_argument(
          "the model mixes the samples of a batch of ", kSamples, ": output '", graph[graph.outputs[k]].name,
          "': ", found,
          "\n  it computes with the batch of 1 that it was exported with, as in a Reshape to "
          "[1, -1, ..]; export it with a dynamic batch, or leave out --open-batch");
  return std::string();
}

}  // namespace librt::convert
