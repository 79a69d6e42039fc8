#include "tools/rtbench/models.h"

#include <cmath>
#include <filesystem>

#include "runtime/model/reader.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/index_bounds.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/report.h"
#include "tools/compiler/train_entry.h"
#include "tools/compiler/writer.h"
#include "tools/compiler/zoo/zoo.h"

namespace rt::bench {
namespace {

Result<std::vector<std::byte>> compiled(ModelGraph model, DType precision = DType::F32) {
  RT_TRY(compiler::optimize(model, {.precision = precision}, nullptr));
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
  BenchModel model{.name = std::move(name),
                   .path = {},
                   .bytes = std::move(bytes).value(),
                   .precision = {},
                   .entry = {},
                   .index_bounds = {}};
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

Result<ModelGraph> zoo_model(std::string_view name, Mode mode) {
  RT_ASSIGN(ModelGraph model, compiler::build_zoo_model(name));
  if (mode == Mode::Infer) return model;
  compiler::TrainOptions training;
  training.loss.class_axis = -1;
  training.optimizer.optimizer.optimizer = compiler::Optimizer::Adam;
  RT_TRY(compiler::add_train_entry(model, training, nullptr));
  return model;
}

Result<ModelGraph> read(const BenchModel& model) {
  if (!model.path.empty()) return load_model(model.path);
  Blob blob;
  blob.data = model.bytes.data();
  blob.size = model.bytes.size();
  return read_model(blob);
}

const Graph* entry_of(const ModelGraph& model, const BenchModel& bench) {
  if (const Graph* graph = model.entry(bench.entry.empty() ? "infer" : bench.entry)) return graph;
  return bench.entry.empty() && model.entries.size() == 1 ? &model.entries[0].graph : nullptr;
}

// Which entry is measured, and what its integer inputs may hold.
std::optional<BenchModel> with_entry(BenchModel model, Mode mode, std::string& error) {
  if (mode == Mode::Train) model.entry = "train_step";
  const auto graph = read(model);
  if (!graph.ok()) {
    error = graph.status().message();
    return std::nullopt;
  }
  const Graph* entry = entry_of(*graph, model);
  if (entry == nullptr) {
    error = mode == Mode::Train
                ? text(model.name, ": has no entry 'train_step'; make one with rtconvert --train")
                : text(model.name, ": has several entries, and none is 'infer'");
    return std::nullopt;
  }
  model.index_bounds = compiler::index_bounds(*entry);
  return model;
}

}  // namespace

std::optional<BenchModel> open_model(const std::string& source, Mode mode, std::string& error) {
  constexpr std::string_view kZoo = "zoo:";
  if (source.starts_with(kZoo)) {
    const std::string name = source.substr(kZoo.size());
    auto model = in_memory(name, zoo_model(name, mode), error);
    return model ? with_entry(std::move(*model), mode, error) : std::nullopt;
  }
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(source, missing);
  if (missing) {
    error = text(source, ": ", missing.message(), "; expected a .rt file or zoo:NAME");
    return std::nullopt;
  }
  return with_entry({.name = std::filesystem::path(source).stem().string(),
                     .path = source,
                     .bytes = {},
                     .file_bytes = bytes,
                     .precision = {},
                     .entry = {},
                     .index_bounds = {}},
                    mode, error);
}

std::optional<BenchModel> matmul_model(int64_t size, std::string& error) {
  return in_memory("matmul", matmul_graph(size), error);
}

std::optional<BenchModel> copy_model(int64_t elements, std::string& error) {
  return in_memory("copy", negation_graph(elements), error);
}

std::optional<BenchModel> in_precision(const BenchModel& model, const std::string& precision,
                                       std::string& error) {
  BenchModel result = model;
  result.precision = precision;
  const DType dtype = dtype_from_name(precision).value_or(DType::F32);
  if (dtype == DType::F32) return result;
  const auto write = [&]() -> Result<std::vector<std::byte>> {
    RT_ASSIGN(ModelGraph graph, read(model));
    return compiled(std::move(graph), dtype);
  };
  auto bytes = write();
  if (!bytes.ok()) {
    error = text(model.name, " in ", precision, ": ", bytes.status().message());
    return std::nullopt;
  }
  result.path.clear();
  result.bytes = std::move(bytes).value();
  result.file_bytes = result.bytes.size();
  return result;
}

std::optional<double> flops_of(const BenchModel& model, const std::map<std::string, int64_t>& extents) {
  const auto graph = read(model);
  if (!graph.ok()) return std::nullopt;
  const Graph* entry = entry_of(*graph, model);
  if (entry == nullptr) return std::nullopt;
  const auto cost = compiler::report_of(*entry, graph->states, extents);
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
