#include "tools/convert/conversion.h"

#include <nlohmann/json.hpp>

#include "runtime/graph/print.h"
#include "runtime/model/reader.h"
#include "tools/cli/written_files.h"
#include "tools/compiler/zoo/zoo.h"
#include "tools/convert/compile.h"
#include "tools/convert/constants.h"
#include "tools/convert/memory_report.h"
#include "tools/convert/training.h"
#include "tools/data/safetensors.h"
#include "tools/onnx/export/model.h"
#include "tools/onnx/import.h"

namespace librt::convert {
namespace {

Result<ModelGraph> load_onnx(const Options& options, onnx::ImportReport& report) {
  onnx::ImportOptions import;
  import.dims = options.dims;
  import.open_batch = options.open_batch;
  import.caches_grow = options.cache_length > 0;
  RT_ASSIGN(import.constants, read_constants(options.constants, options.constant_arrays));
  import.untie = options.changes_weights();
  import.tie = options.tie;
  import.external_folder = options.external_folder;
  import.custom_domains = options.custom_domains;
  import.custom_outputs = options.custom_outputs;
  import.progress = options.progress;
  tools::Safetensors weights;
  if (!options.weights.empty()) {
    RT_ASSIGN(weights, tools::read_safetensors(options.weights));
    import.weights = &weights.arrays;
    import.weights_source = options.weights;
  }
  auto model = options.bytes.empty() ? onnx::import_onnx(options.input, import, report)
                                     : onnx::import_onnx_bytes(options.bytes, import, report);
  if (!report.kept.empty())
    report.warnings.push_back(text(options.weights, ": has ", weights.arrays.size(), " weights; ",
                                   report.kept.size(), " others keep the model's values, the first is '",
                                   report.kept.front(), "'"));
  if (options.train) report.warnings.insert(report.warnings.end(), report.lost.begin(), report.lost.end());
  return model;
}

Result<ModelGraph> load(const Options& options, onnx::ImportReport& report) {
  RT_TRY(compiler::report_progress(options.progress, "import", 0, 0));
  const Source source = options.source();
  if (source == Source::Onnx) return load_onnx(options, report);
  const auto read = [&]() -> Result<ModelGraph> {
    if (source == Source::Zoo) return compiler::build_zoo_model(options.input.substr(4));
    if (options.bytes.empty()) return load_model(options.input);
    return read_model(Blob::copy_of(options.bytes.data(), options.bytes.size()));
  };
  auto model = read();
  if (!model.ok()) return model;
  for (const auto& [name, extent] : options.dims) RT_TRY(compiler::bind_symbol(*model, name, extent));
  return model;
}

/// Reports the second file of an ONNX model, if it has one.
void add_external_data(const std::string& file, std::string& text, Json& json) {
  if (file.empty()) return;
  json["external_data"] = file;
  append(text, external_data_line(file), "\n");
}

/// Writes trained weights to a file other than a compiled model.
Status write_trained(const Options& options, Conversion& made) {
  const bool exports = options.save_adapter.empty();
  const std::string& output = !exports                      ? options.save_adapter
                              : options.export_onnx.empty() ? options.export_safetensors
                                                            : options.export_onnx;
  onnx::ExportedWeights weights;
  if (exports) {
    RT_ASSIGN(weights, export_trained(options));
  } else {
    RT_ASSIGN(weights.count, save_adapter(options));
  }
  const std::string& source = !options.merge_adapter.empty() ? options.merge_adapter
                              : !options.checkpoint.empty()  ? options.checkpoint
                                                             : options.input;
  Json json = {{"output", output}, {"weights", weights.count}};
  made.text = text("file        ", output, ", ", weights.count, " weights of ", source, "\n");
  if (weights.ranges > 0) {
    json["ranges_left_out"] = weights.ranges;
    append(
        made.text, "left out    the ranges of ", weights.ranges,
        " tensors of the quantization-aware training: these are the weights in float; MODEL.rt --checkpoint "
        "FILE --precision int8 takes both\n");
  }
  add_external_data(weights.file, made.text, json);
  made.json = json_text(json);
  return {};
}

/// The model as it was written.
Result<ModelGraph> read_back(const Options& options, const std::vector<std::byte>& bytes) {
  if (options.output.empty()) return read_model(Blob::copy_of(bytes.data(), bytes.size()));
  return load_model(options.output);
}

Status report_memory(const Options& options, const ModelGraph& model, Conversion& made, Json& json) {
  RT_ASSIGN(const MemoryReport report, memory_report(model, options));
  json["memory_report"] = report.json();
  made.text += report.text();
  return {};
}

Status convert(const Options& given, bool check_only, Conversion& made) {
  auto loaded = load(given, made.import);
  Options options = given;
  options.training.known = made.import.weights;
  options.training.detached = made.import.detached;
  made.warnings = made.import.warnings;
  if (!loaded.ok()) return std::move(loaded).status();
  ModelGraph& model = *loaded;
  if (!check_only) RT_TRY(compile(options, model, made.summary, made.bytes));
  if (options.inspect) made.graph = print(model);
  Json json;
  if (check_only) {
    if (!options.memory_report) return {};
    json["model"] = options.input;
    RT_TRY(report_memory(options, model, made, json));
    made.json = json_text(json);
    return {};
  }
  made.passes = made.summary.passes.table();
  made.warnings = warnings_of(options, made.import, made.summary);
  json = summary_json(options, made.import, made.summary);
  made.text = summary_text(options, made.import, made.summary);
  if (options.memory_report) {
    RT_ASSIGN(const ModelGraph written, read_back(options, made.bytes));
    RT_TRY(report_memory(options, written, made, json));
  }
  made.json = json_text(json);
  return {};
}

/// A network of the zoo as an ONNX file for other runtimes: as it is published, without passes.
Status write_published(const Options& options, Conversion& made) {
  RT_ASSIGN(const ModelGraph model, load(options, made.import));
  RT_ASSIGN(const onnx::WrittenModel written, onnx::write_onnx(model, options.output, options.external_data));
  Json json = {{"output", options.output}, {"onnx_nodes", written.nodes}, {"opset", written.opset}};
  made.text =
      text("file        ", options.output, ", ", written.nodes, " nodes of opset ", written.opset, "\n");
  add_external_data(written.weights, made.text, json);
  made.json = json_text(json);
  return {};
}

bool is_published(const Options& options) {
  return options.writes_onnx() && options.source() == Source::Zoo && options.precision == "fp32" &&
         options.cache_length == 0 && options.merge_adapter.empty() && options.disabled_passes.empty();
}

/// That no file to write is one that is read.
Status check_written(const Options& options) {
  std::vector<tools::NamedFile> read = {{"--checkpoint", options.checkpoint},
                                        {"--merge-adapter", options.merge_adapter},
                                        {"--weights", options.weights},
                                        {"--labels", options.labels}};
  if (options.bytes.empty()) tools::add_model(read, options.input);
  for (const auto& [name, value] : options.constants) read.push_back({"--constant", value});
  for (const auto& [name, path] : options.verify_inputs) read.push_back({"--input", path});
  tools::add_file_or_folder(read, "--calibrate", options.calibrate, ".npy");
  tools::add_file_or_folder(read, "--evaluate", options.evaluate, ".npy");
  const tools::NamedFile written[] = {
      {"--output", options.output},
      {"the weights of --output", options.writes_onnx() ? Options::data_of(options.output) : std::string()},
      {"--save-adapter", options.save_adapter},
      {"--export-onnx", options.export_onnx},
      {"the weights of --export-onnx", Options::data_of(options.export_onnx)},
      {"--export-safetensors", options.export_safetensors}};
  const std::string conflict = tools::conflict_of(read, written);
  return conflict.empty() ? Status() : invalid_argument(conflict);
}

Status dispatch(const Options& options, bool check_only, Conversion& made) {
  RT_TRY(check_written(options));
  if (options.writes_weights()) return write_trained(options, made);
  if (is_published(options) && !check_only) return write_published(options, made);
  return convert(options, check_only, made);
}

/// The error, and the nodes that cannot be converted.
void report_failure(Conversion& made) {
  Json nodes = Json::array();
  for (const onnx::UnsupportedNode& node : made.import.unsupported)
    nodes.push_back({{"node", node.name},
                     {"op", node.op},
                     {"domain", node.domain},
                     {"opset", node.opset},
                     {"dtype", node.dtype},
                     {"reason", node.reason},
                     {"help", node.help}});
  Json json = {{"unsupported", nodes}};
  json["error"] = made.status.message();
  json["code"] = static_cast<int>(made.status.code());
  made.json = json_text(json);
  made.text = nodes.empty() ? "" : onnx::table_of(made.import.unsupported);
}

}  // namespace

Conversion run_conversion(const Options& options, bool check_only) {
  Conversion made;
  made.status = dispatch(options, check_only, made);
  if (!made.status.ok()) report_failure(made);
  return made;
}

std::string operators_json() {
  Json all = Json::array();
  for (const auto& op : onnx::supported_ops())
    all.push_back({{"domain", op.domain},
                   {"op", op.op},
                   {"first_opset", op.first_opset},
                   {"last_opset", op.last_opset == onnx::kNewestOpset ? Json() : Json(op.last_opset)}});
  return json_text(all);
}

std::string passes_json() {
  Json all = Json::array();
  for (const auto& pass : compiler::all_passes())
    all.push_back({{"pass", pass.name}, {"summary", pass.summary}});
  return json_text(all);
}

}  // namespace librt::convert
