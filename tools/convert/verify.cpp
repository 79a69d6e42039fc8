#include "tools/convert/verify.h"

#include <cstring>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/core/random.h"
#include "runtime/model/reader.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/shape/index_bounds.h"
#include "tools/convert/run_session.h"
#include "tools/convert/verify_extents.h"
#include "tools/data/array.h"
#include "tools/data/compare.h"
#include "tools/onnx/array_file.h"

namespace librt::convert {

namespace {

using tools::Array;

// Floats in [-1, 1); integers in [0, bound).
Array random_array(const std::string& name, const TensorInfo& info, uint64_t bound, uint64_t& state) {
  const auto dims = info.shape.dims();
  Array array{.name = name,
              .type = static_cast<DType>(info.dtype),
              .dims = {dims.begin(), dims.end()},
              .bytes = std::vector<std::byte>(info.bytes())};
  for (int64_t i = 0; i < info.elements(); ++i) {
    const uint64_t bits = split_mix(state);
    const double number = is_float(info.dtype) ? static_cast<double>(bits >> 11) * 0x1p-52 - 1
                                               : static_cast<double>((bits >> 11) % bound);
    store_element(array.bytes.data(), info.dtype, i, number);
  }
  return array;
}

}  // namespace

Result<std::vector<Array>> make_inputs(const ModelGraph& model, const VerifyOptions& options) {
  RT_ASSIGN(const std::vector<ExtentCase> cases, extent_cases(model, options.seed));
  // The last case is the least special one.
  return make_inputs(model, options, cases.back().inputs);
}

Result<std::vector<Array>> make_inputs(const ModelGraph& model, const VerifyOptions& options,
                                       const std::vector<TensorInfo>& infos) {
  const Graph& graph = *model.entry("infer");
  for (const auto& [name, path] : options.inputs) {
    bool found = false;
    for (ValueId id : graph.inputs) found = found || graph[id].name == name;
    if (!found) return invalid_argument("--input: the model has no input '", name, "'");
  }
  std::vector<Array> inputs;
  const auto bounds = compiler::index_bounds(graph);
  uint64_t state = options.seed;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    const auto file = options.inputs.find(value.name);
    if (file == options.inputs.end()) {
      const auto bound = bounds.find(value.name);  // 0 and 1 are valid nearly everywhere
      inputs.push_back(random_array(value.name, infos[i],
                                    bound == bounds.end() ? 2 : static_cast<uint64_t>(bound->second), state));
      continue;
    }
    RT_ASSIGN(Array array, tools::read_array(file->second));
    if (array.type != value.dtype || static_cast<int>(array.dims.size()) != value.rank())
      return invalid_argument("--input ", value.name, ": expected ", name_of(value.dtype), " of rank ",
                              value.rank(), ", found ", tools::describe(array));
    inputs.push_back(std::move(array));
  }
  return inputs;
}

namespace {

Result<std::vector<Array>> evaluate(const ModelGraph& model, std::span<const Array> inputs) {
  Graph graph = *model.entry("infer");
  RT_TRY(compiler::expand_composites(graph, model.states));
  std::vector<ConstTensorView> views;
  for (const Array& input : inputs) {
    const void* bytes = input.bytes.empty() ? "" : static_cast<const void*>(input.bytes.data());
    views.push_back({bytes, {.dtype = input.type, .shape = Shape(std::span(input.dims))}});
  }
  std::vector<ops::HostTensor> states = ops::initial_states(model.states);
  RT_ASSIGN(auto results, ops::evaluate_graph(graph, views, &states));
  std::vector<Array> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto dims = results[i].info.shape.dims();
    outputs.push_back({.name = graph[graph.outputs[i]].name,
                       .type = static_cast<DType>(results[i].info.dtype),
                       .dims = {dims.begin(), dims.end()},
                       .bytes = std::move(results[i].bytes)});
  }
  return outputs;
}

void compare_all(const std::string& what, std::span<const Array> got, std::span<const Array> want,
                 const VerifyOptions& options, std::vector<VerifyLine>& lines) {
  for (size_t i = 0; i < want.size(); ++i) {
    VerifyLine line{.what = what, .output = want[i].name, .equal = false, .largest = 0, .text = "missing"};
    if (i < got.size()) {
      const tools::Difference found = tools::compare(got[i], want[i], options.rtol, options.atol);
      line.equal = found.equal();
      line.largest = found.largest;
      line.text = found.text;
    }
    lines.push_back(std::move(line));
  }
}

}  // namespace

Result<std::vector<VerifyLine>> verify_compiled(const ModelGraph& original, std::span<const std::byte> file,
                                                const VerifyOptions& options) {
  RT_ASSIGN(std::vector<ExtentCase> cases, extent_cases(original, options.seed));
  // Input files fix one set of extents.
  if (!options.inputs.empty()) cases.resize(1);
  RT_ASSIGN(const ModelGraph compiled,
            read_model(Blob{.owner = {}, .data = file.data(), .size = file.size()}));
  std::string error;
  std::vector<VerifyLine> lines;
  Status refusal;
  size_t done = 0;
  for (const ExtentCase& at : cases) {
    RT_TRY(compiler::report_progress(options.progress, "verify", done++, cases.size()));
    RT_ASSIGN(const std::vector<Array> inputs, make_inputs(original, options, at.inputs));
    auto want = evaluate(original, inputs);
    if (!want.ok()) {
      // The shapes are valid, but not with these values.
      refusal = std::move(want).status();
      continue;
    }
    const size_t first = lines.size();
    auto got = evaluate(compiled, inputs);
    if (!got.ok()) return std::move(got).status().in("compiled, at ", at.at);
    compare_all("compiled", *got, *want, options, lines);
    if (!options.backend.empty()) {
      const auto outputs = run_session(file, options.backend, false, inputs, error);
      if (!outputs)
        return Status::make(Code::Device, "session on ", options.backend, at.at.empty() ? "" : " at ", at.at,
                            ": ", error);
      compare_all(options.backend, *outputs, *want, options, lines);
    }
    for (size_t i = first; i < lines.size() && options.inputs.empty(); ++i) lines[i].at = at.at;
  }
  if (lines.empty()) RT_TRY(std::move(refusal));
  return lines;
}

}  // namespace librt::convert
