#include "tools/rtbench/models.h"

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <span>

#include "runtime/model/reader.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/report.h"
#include "tools/compiler/shape/index_bounds.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/writer.h"
#include "tools/compiler/zoo/zoo.h"
#include "tools/convert/quantization.h"

namespace librt::bench {
namespace {

Result<std::vector<std::byte>> compiled(ModelGraph model, DType precision = DType::F32) {
  RT_TRY(compiler::optimize(model, {.precision = precision}, nullptr));
  return compiler::serialize_model(model);
}

std::optional<BenchModel> in_memory(std::string name, Result<ModelGraph> graph, std::string& error) {
  BenchModel model{.name = std::move(name)};
  const auto make = [&]() -> Status {
    if (!graph.ok()) return graph.status();
    RT_ASSIGN(const std::vector<std::byte> bytes, compiled(std::move(graph).value()));
    return store(model, bytes);
  };
  if (Status status = make(); !status.ok()) {
    error = text(model.name, ": ", status.message());
    return std::nullopt;
  }
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

Result<ModelGraph> two_input_matmul_graph(int64_t size) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  compiler::Builder builder(model.entries.back().graph);
  const ValueId x = builder.input("x", DType::F32, {{.extent = size}, {.extent = size}});
  const ValueId y = builder.input("y", DType::F32, {{.extent = size}, {.extent = size}});
  builder.output(builder.emit(op::MatMulAttributes{}, {x, y}));
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
  // What rttrain reads of a model of rtconvert.
  model.metadata.emplace_back("train.loss", "cross_entropy");
  model.metadata.emplace_back("train.optimizer", "adam");
  model.metadata.emplace_back("train.class_axis", std::to_string(training.loss.class_axis));
  return model;
}

const Graph* entry_of(const ModelGraph& model, const BenchModel& bench) {
  if (const Graph* graph = model.entry(bench.entry.empty() ? "infer" : bench.entry)) return graph;
  return bench.entry.empty() && model.entries.size() == 1 ? &model.entries[0].graph : nullptr;
}

Result<std::vector<std::byte>> quantized(ModelGraph graph, const BenchModel& model,
                                         const std::string& precision,
                                         const std::vector<tools::Array>& rows) {
  if (!model.entry.empty() || graph.entry("infer") == nullptr)
    return unsupported("only an entry 'infer' is quantized; for training, take fp16 or bf16");
  const bool calibrates = precision == "int8";
  compiler::PipelineOptions pipeline{.residuals = !calibrates, .widen = true};
  RT_TRY(compiler::optimize(graph, pipeline, nullptr));
  convert::Options options;
  options.precision = precision;
  options.accuracy = "never";  // the session's outputs are compared instead
  convert::QuantizationReport report;
  RT_TRY(calibrates ? convert::quantize_model(graph, options, rows, report)
                    : convert::quantize_model(graph, options, report));
  return compiled(std::move(graph));
}

// Selects the entry to measure and finds the index bounds of its integer inputs.
std::optional<BenchModel> with_entry(BenchModel model, Mode mode, std::string& error) {
  if (mode == Mode::Train) model.entry = "train_step";
  const auto graph = load_model(model.path);
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

Status store(BenchModel& model, std::span<const std::byte> bytes) {
  const int descriptor = memfd_create("model", MFD_CLOEXEC);
  if (descriptor < 0) return Status(Code::Io, "cannot create a file in memory");
  model.file = std::shared_ptr<const void>(
      nullptr, [descriptor](const void*) { static_cast<void>(close(descriptor)); });
  model.path = text("/proc/self/fd/", descriptor);
  model.file_bytes = bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written <= 0) return Status(Code::OutOfMemory, "no memory for the compiled model");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

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
    error = text(source, ": ", missing.message(), "; expected a .rt or .onnx file, or zoo:NAME");
    return std::nullopt;
  }
  BenchModel model{.name = std::filesystem::path(source).stem().string(), .path = source};
  model.file_bytes = bytes;
  return with_entry(std::move(model), mode, error);
}

std::optional<BenchModel> matmul_model(int64_t size, std::string& error) {
  return in_memory("matmul", matmul_graph(size), error);
}

std::optional<BenchModel> two_input_matmul_model(int64_t size, std::string& error) {
  return in_memory("matmul", two_input_matmul_graph(size), error);
}

std::optional<BenchModel> copy_model(int64_t elements, std::string& error) {
  return in_memory("copy", negation_graph(elements), error);
}

const std::vector<std::string>& precisions() {
  static const std::vector<std::string> all{"fp32", "tf32",         "fp16",        "bf16",
                                            "int8", "int8-weights", "int4-weights"};
  return all;
}

bool is_quantized(const std::string& precision) {
  return precision.starts_with("int");
}

std::optional<BenchModel> in_precision(const BenchModel& model, const std::string& precision,
                                       const std::vector<tools::Array>& rows, std::string& error) {
  BenchModel result = model;
  result.precision = precision;
  const DType dtype = dtype_from_name(precision).value_or(DType::F32);
  if (dtype == DType::F32 && !is_quantized(precision)) return result;
  const auto write = [&]() -> Status {
    RT_ASSIGN(ModelGraph graph, load_model(model.path));
    RT_ASSIGN(const std::vector<std::byte> bytes, is_quantized(precision)
                                                      ? quantized(std::move(graph), model, precision, rows)
                                                      : compiled(std::move(graph), dtype));
    return store(result, bytes);
  };
  if (Status status = write(); !status.ok()) {
    error = text(model.name, " in ", precision, ": ", status.message());
    return std::nullopt;
  }
  return result;
}

std::optional<Work> work_of(const BenchModel& model, const std::map<std::string, int64_t>& extents) {
  const auto graph = load_model(model.path);
  if (!graph.ok()) return std::nullopt;
  const Graph* entry = entry_of(*graph, model);
  if (entry == nullptr) return std::nullopt;
  const auto cost = compiler::report_of(*entry, graph->states, extents);
  if (!cost.ok()) return std::nullopt;
  return Work{.flops = cost->flops, .bytes = cost->bytes};
}

std::string zoo_text() {
  std::string out;
  for (const compiler::ZooEntry& entry : compiler::zoo())
    append(out, text("  zoo:", entry.name,
                     std::string(std::max<size_t>(1, 16 - std::string_view(entry.name).size()), ' '),
                     entry.description, "\n"));
  return out;
}

}  // namespace librt::bench
