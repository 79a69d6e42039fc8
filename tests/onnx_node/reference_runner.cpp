#include "runtime/model/reader.h"
#include "runtime/ops/evaluate.h"
#include "tests/onnx_node/runner.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/writer.h"

namespace librt::test {

std::optional<std::vector<tools::Array>> run_reference(ModelGraph& model,
                                                       std::span<const tools::Array> inputs,
                                                       std::string& error) {
  Graph& graph = model.entries[0].graph;
  if (Status status = compiler::expand_composites(graph, model.states); !status.ok()) {
    error = status.message();
    return std::nullopt;
  }
  std::vector<ConstTensorView> views;
  for (const tools::Array& input : inputs) {
    // An empty tensor has no bytes but must have a non-null pointer to be present.
    const void* bytes = input.bytes.empty() ? "" : static_cast<const void*>(input.bytes.data());
    views.push_back({bytes, {.dtype = input.type, .shape = Shape(std::span(input.dims))}});
  }
  auto results = ops::evaluate_graph(graph, views);
  if (!results.ok()) {
    error = results.status().message();
    return std::nullopt;
  }
  std::vector<tools::Array> outputs;
  for (ops::HostTensor& result : *results) {
    const auto dims = result.info.shape.dims();
    outputs.push_back({.name = "",
                       .type = static_cast<DType>(result.info.dtype),
                       .dims = {dims.begin(), dims.end()},
                       .bytes = std::move(result.bytes)});
  }
  return outputs;
}

std::optional<std::vector<std::byte>> compile(ModelGraph& model, std::string& error) {
  if (Status status = compiler::optimize(model, {}, nullptr); !status.ok()) {
    error = "optimizing: " + status.message();
    return std::nullopt;
  }
  auto bytes = compiler::serialize_model(model);
  if (!bytes.ok()) {
    error = "writing: " + bytes.status().message();
    return std::nullopt;
  }
  return std::move(bytes).value();
}

std::optional<std::vector<tools::Array>> run_compiled_reference(ModelGraph& model,
                                                                std::span<const tools::Array> inputs,
                                                                std::string& error) {
  auto bytes = compile(model, error);
  if (!bytes) return std::nullopt;
  auto read = read_model(Blob::own(std::move(*bytes)));
  if (!read.ok()) {
    error = "reading: " + read.status().message();
    return std::nullopt;
  }
  return run_reference(*read, inputs, error);
}

}  // namespace librt::test
