#include "tools/rtbench/models.h"

#include <cmath>
#include <filesystem>

#include "runtime/model/reader.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/report.h"
#include "tools/compiler/writer.h"
#include "tools/compiler/zoo/zoo.h"

namespace rt::bench {
namespace {

Result<std::vector<std::byte>> compiled(ModelGraph model) {
  RT_TRY(compiler::optimize(model, {}, nullptr));
  return compiler::serialize_model(model);
}

std::optional<BenchModel> in_memory(std::string name, Result<ModelGraph> graph, std::string& error) {
  if (!graph.ok()) {
    error = graph.status().message();
    return std::nullopt;
  }
  auto bytes = compiled(std::move(graph).value());
  if (!bytes.ok()) {
    error = text(name, ": ", bytes.status().message());
    return std::nullopt;
  }
  BenchModel model{.name = std::move(name), .path = {}, .bytes = std::move(bytes).value()};
  model.file_bytes = model.bytes.size();
  return model;
}

Result<ModelGraph> matmul_graph(int64_t size) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  compiler::Builder builder(model.entries.back().graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = size}, {.extent = size}});
  std::vector<float> weights(static_cast<size_t>(size * size));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 17) * 0.125f - 1.0f;
  const ValueId w = builder.constant({.dtype = DType::F32, .shape = {size, size}},
                                     Blob::copy_of(weights.data(), weights.size() * sizeof(float)));
  builder.output(builder.emit(op::MatMulAttributes{}, {x, w}));
  RT_TRY(Status(builder.status()));
  return model;
}

Result<ModelGraph> negation_graph(int64_t elements) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  compiler::Builder builder(model.entries.back().graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = elements}});
  builder.output(builder.neg(x));
  RT_TRY(Status(builder.status()));
  return model;
}

Result<ModelGraph> read(const BenchModel& model) {
  if (!model.path.empty()) return load_model(model.path);
  Blob blob;
  blob.data = model.bytes.data();
  blob.size = model.bytes.size();
  return read_model(blob);
}

}  // namespace

std::optional<BenchModel> open_model(const std::string& source, std::string& error) {
  constexpr std::string_view kZoo = "zoo:";
  if (source.starts_with(kZoo)) {
    const std::string name = source.substr(kZoo.size());
    return in_memory(name, compiler::build_zoo_model(name), error);
  }
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(source, missing);
  if (missing) {
    error = text(source, ": ", missing.message(), "; expected a .rt file or zoo:NAME");
    return std::nullopt;
  }
  return BenchModel{.name = std::filesystem::path(source).stem().string(),
                    .path = source,
                    .bytes = {},
                    .file_bytes = bytes};
}

std::optional<BenchModel> matmul_model(int64_t size, std::string& error) {
  return in_memory("matmul", matmul_graph(size), error);
}

std::optional<BenchModel> copy_model(int64_t elements, std::string& error) {
  return in_memory("copy", negation_graph(elements), error);
}

std::optional<double> flops_of(const BenchModel& model, const std::map<std::string, int64_t>& extents) {
  const auto graph = read(model);
  if (!graph.ok() || graph->entry("infer") == nullptr) return std::nullopt;
  const auto cost = compiler::report_of(*graph->entry("infer"), graph->states, extents);
  if (!cost.ok()) return std::nullopt;
  return cost->flops;
}

std::string zoo_text() {
  std::string out;
  for (const compiler::ZooEntry& entry : compiler::zoo())
    append(out, text("  zoo:", entry.name,
                     std::string(std::max<size_t>(1, 16 - std::string_view(entry.name).size()), ' '),
                     entry.description, "\n"));
  return out;
}

}  // namespace rt::bench
