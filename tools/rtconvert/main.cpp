// rtconvert: compiles a model into a .rt file.
//
// Knows: the order of the steps and how results are shown: progress on stderr, the report on stdout.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/graph/print.h"
#include "runtime/model/reader.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/program.h"
#include "tools/compiler/cache/cache.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/report.h"
#include "tools/compiler/writer.h"
#include "tools/compiler/zoo/zoo.h"
#include "tools/onnx/graph_export.h"
#include "tools/onnx/import.h"
#include "tools/rtconvert/constants.h"
#include "tools/rtconvert/coverage.h"
#include "tools/rtconvert/keep_accuracy.h"
#include "tools/rtconvert/memory_budget.h"
#include "tools/rtconvert/options.h"
#include "tools/rtconvert/planned_peak.h"
#include "tools/rtconvert/quantization.h"
#include "tools/rtconvert/training.h"
#include "tools/rtconvert/verify.h"

namespace {

using librt::Result;
using librt::Status;
using librt::convert::Options;
using librt::convert::VerifyLine;
using Json = nlohmann::ordered_json;

void progress(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
}

// Names in files, and of files, may be invalid UTF-8, which JSON requires.
void print_json(const Json& json) {
  print_line(json.dump(2, ' ', false, Json::error_handler_t::replace));
}

bool has_suffix(const std::string& text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.ends_with(suffix);
}

int list_ops(bool json) {
  Json all = Json::array();
  for (const auto& op : librt::onnx::supported_ops()) {
    const bool newest = op.last_opset == librt::onnx::kNewestOpset;
    if (json)
      all.push_back({{"domain", op.domain},
                     {"op", op.op},
                     {"first_opset", op.first_opset},
                     {"last_opset", newest ? Json() : Json(op.last_opset)}});
    else
      print_line(librt::text(op.domain, " ", op.op, " ", op.first_opset,
                             newest ? "+" : librt::text("-", op.last_opset)));
  }
  if (json) print_json(all);
  return librt::tools::kFine;
}

int list_passes() {
  for (const auto& pass : librt::compiler::all_passes())
    print_line(librt::text(pass.name, ": ", pass.summary));
  return librt::tools::kFine;
}

Result<librt::ModelGraph> load(const Options& options, librt::onnx::ImportReport& report) {
  constexpr std::string_view kZoo = "zoo:";
  const bool onnx = !options.input.starts_with(kZoo) && !has_suffix(options.input, ".rt");
  if (onnx) {
    librt::onnx::ImportOptions import;
    import.dims = options.dims;
    import.open_batch = options.open_batch;
    import.caches_grow = options.cache_length > 0;
    RT_ASSIGN(import.constants, librt::convert::read_constants(options.constants));
    import.untie = options.changes_weights();
    import.tie = options.tie;
    auto model = librt::onnx::import_onnx(options.input, import, report);
    if (options.train) report.warnings.insert(report.warnings.end(), report.lost.begin(), report.lost.end());
    return model;
  }
  auto model = options.input.starts_with(kZoo)
                   ? librt::compiler::build_zoo_model(options.input.substr(kZoo.size()))
                   : librt::load_model(options.input);
  if (!model.ok()) return model;
  for (const auto& [name, extent] : options.dims) RT_TRY(librt::compiler::bind_symbol(*model, name, extent));
  return model;
}

// The table of nodes that cannot be converted, or the plain error.
int report_import_failure(const Options& options, const Status& status,
                          const librt::onnx::ImportReport& report) {
  if (options.json) {
    Json nodes = Json::array();
    for (const auto& node : report.unsupported)
      nodes.push_back({{"node", node.name},
                       {"op", node.op},
                       {"domain", node.domain},
                       {"opset", node.opset},
                       {"dtype", node.dtype},
                       {"reason", node.reason},
                       {"help", node.help}});
    print_json({{"error", status.message()}, {"unsupported", nodes}});
  } else if (!report.unsupported.empty()) {
    std::fputs(librt::onnx::table_of(report.unsupported).c_str(), stdout);
  }
  return librt::tools::report_failure("rtconvert", status);
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) librt::append(all, librt::text(all.empty() ? "" : ", ", name));
  return all;
}

struct Summary {
  size_t nodes_before = 0;
  librt::compiler::GraphReport after;
  librt::Result<uint64_t> peak = 0;  ///< of a session on the cpu backend
  uintmax_t file_bytes = 0;
  std::vector<VerifyLine> verified;
  librt::compiler::TrainReport training;
  librt::compiler::LoraReport adapters;
  std::optional<librt::convert::MemoryBudget> budget;
  size_t merged = 0;  ///< weights that --merge-adapter changed
  std::vector<librt::convert::Coverage> coverage, training_coverage;
  librt::compiler::CacheReport cache;
  librt::compiler::PrecisionReport precision;
  librt::convert::AccuracyReport accuracy;
  librt::convert::QuantizationReport quantization;
  librt::convert::PrecisionCost cost;
};

Json coverage_json(const librt::convert::Coverage& backend) {
  return {{"nodes", backend.nodes},
          {"host", backend.host},
          {"elsewhere", backend.elsewhere},
          {"depends", backend.depends}};
}

Json quantization_json(const librt::convert::QuantizationReport& report) {
  Json json;
  json["matmuls"] = report.matmuls;
  json["tables"] = report.tables;
  if (report.rows > 0) json["rows"] = report.rows;
  if (report.accuracy_f32 >= 0)
    json["accuracy"] = {{"f32", report.accuracy_f32}, {"int8", report.accuracy_int8}};
  if (report.output_error >= 0) json["output_error"] = report.output_error;
  for (const auto& line : report.lines)
    json["nodes"].push_back(
        {{"name", line.name}, {"op", line.op}, {"decibels", line.decibels}, {"kept_f32", line.kept}});
  return json;
}

Json summary_json(const Options& options, const librt::onnx::ImportReport& import, const Summary& summary) {
  Json json;
  json["model"] = options.input;
  json["output"] = options.output;
  if (import.onnx_nodes > 0) json["onnx_nodes"] = import.onnx_nodes;
  json["nodes_before"] = summary.nodes_before;
  json["nodes_after"] = summary.after.nodes;
  json["parameters"] = summary.after.parameters;
  json["parameter_bytes"] = summary.after.parameter_bytes;
  json["flops"] = summary.after.flops;
  if (summary.peak.ok())
    json["peak_bytes"] = *summary.peak;
  else
    json["live_bytes"] = summary.after.live_bytes;
  json["extents"] = summary.after.extents;
  json["precision"] = {{"asked", options.precision},
                       {"nodes_f32", summary.precision.f32},
                       {"nodes_f16", summary.precision.f16},
                       {"nodes_bf16", summary.precision.bf16},
                       {"casts", summary.precision.casts}};
  if (options.keep_accuracy && !options.quantizes()) {
    Json kept = Json::array();
    for (size_t i = 0; i < summary.accuracy.kept; ++i)
      kept.push_back({{"node", summary.accuracy.nodes[i].name},
                      {"op", summary.accuracy.nodes[i].op},
                      {"error", summary.accuracy.nodes[i].error}});
    json["accuracy"] = {
        {"before", summary.accuracy.before}, {"after", summary.accuracy.after}, {"kept", kept}};
  }
  if (!import.shared.empty()) {
    json["shared_weights"] = Json::array();
    for (const auto& weight : import.shared)
      json["shared_weights"].push_back(
          {{"initializer", weight.name}, {"weights", weight.parameters}, {"kept", weight.kept}});
  }
  if (summary.cost.error >= 0)
    json["output_error"] = {{"value", summary.cost.error}, {"ruinous", summary.cost.is_ruinous()}};
  if (options.train)
    json["training"] = {{"trained", summary.training.trained},
                        {"frozen", summary.training.frozen},
                        {"trained_elements", summary.training.trained_elements}};
  if (summary.budget)
    json["memory"] = {{"bytes", summary.budget->total()},
                      {"states", summary.budget->states},
                      {"batch", summary.budget->batch},
                      {"micro_batch", summary.budget->micro_batch},
                      {"recomputed_nodes", summary.budget->recomputed_nodes},
                      {"recomputed_flops", summary.budget->recomputed_flops},
                      {"optimizer_state", librt::name_of(summary.budget->optimizer_state)}};
  if (options.lora)
    json["adapters"] = {{"weights", summary.adapters.adapted}, {"elements", summary.adapters.elements}};
  if (!options.merge_adapter.empty()) json["merged_weights"] = summary.merged;
  if (options.cache_length > 0)
    json["cache"] = {{"length", options.cache_length},
                     {"states", summary.cache.states},
                     {"bytes", summary.cache.bytes},
                     {"inputs", summary.cache.inputs},
                     {"outputs", summary.cache.outputs}};
  if (options.quantizes() || options.training.quantize_aware)
    json["quantization"] = quantization_json(summary.quantization);
  json["file_bytes"] = summary.file_bytes;
  for (const auto& backend : summary.coverage) json["backends"][backend.backend] = coverage_json(backend);
  for (const auto& backend : summary.training_coverage)
    json["training"]["backends"][backend.backend] = coverage_json(backend);
  json["warnings"] = import.warnings;
  json["verified"] = Json::array();
  for (const VerifyLine& line : summary.verified)
    json["verified"].push_back({{"what", line.what},
                                {"at", line.at},
                                {"output", line.output},
                                {"equal", line.equal},
                                {"largest_difference", line.largest}});
  return json;
}

void print_coverage(const char* what, const std::vector<librt::convert::Coverage>& coverage) {
  for (const auto& backend : coverage)
    print_line(librt::text(what, backend.backend,
                           std::string(9 - std::min<size_t>(8, backend.backend.size()), ' '),
                           backend.text()));
}

/// Prints which weights that an exporter stored once were split and which stay tied.
void print_shared(const std::vector<librt::onnx::SharedWeight>& shared) {
  constexpr size_t kMost = 8;
  for (const librt::onnx::SharedWeight& weight : shared) {
    if (weight.parameters.empty()) {
      print_line(librt::text("tied        '", weight.name, "' stays one weight: ", weight.kept));
      continue;
    }
    const size_t count = weight.parameters.size();
    const std::vector<std::string> some(
        weight.parameters.begin(),
        weight.parameters.begin() + static_cast<std::ptrdiff_t>(std::min(count, kMost)));
    print_line(librt::text("untied      '", weight.name, "', which the exporter stored once, is ", count,
                           " weights: ", joined(some),
                           count > kMost ? librt::text(" and ", count - kMost, " more") : ""));
  }
}

/// Prints the accuracy cost of the precision, and a warning if it is large.
void print_cost(const Options& options, const librt::convert::PrecisionCost& cost) {
  if (!options.measures_accuracy()) return;
  if (cost.error < 0) {
    if (!cost.why.empty()) print_line("accuracy    not measured: " + cost.why);
    return;
  }
  char error[32];
  std::snprintf(error, sizeof error, "%.2g", cost.error);
  const char* on = options.verify_inputs.empty() && options.calibrate.empty() ? " on random inputs" : "";
  if (!options.keep_accuracy && options.calibrate.empty())
    print_line(librt::text("accuracy    error of the outputs ", error, on));
  if (!cost.is_ruinous()) return;
  const bool offers = options.computes_in_16_bits() || !options.calibrate.empty();
  progress(librt::text(
      "warning: --precision ", options.precision, " changes the outputs by ", error,
      " of their largest value", on, ", which may ruin the model; ",
      offers ? "--keep-accuracy 0.01 keeps the nodes in fp32 that cause it"
             : "--calibrate DATA with --precision int8 --keep-accuracy 0.01, --keep-fp32 PATTERN or "
               "another precision help",
      *on != 0 ? "; --input NAME=FILE measures on real data" : ""));
}

void print_summary(const Options& options, const librt::onnx::ImportReport& import, const Summary& summary) {
  for (const std::string& warning : import.warnings) progress("warning: " + warning);
  if (import.onnx_nodes > 0)
    print_line(librt::text("nodes       ", import.onnx_nodes, " in ONNX, ", summary.nodes_before,
                           " imported, ", summary.after.nodes, " after optimization"));
  else
    print_line(
        librt::text("nodes       ", summary.nodes_before, ", ", summary.after.nodes, " after optimization"));
  print_line(librt::text("parameters  ", librt::grouped(summary.after.parameters), " in ",
                         librt::bytes_text(summary.after.parameter_bytes)));
  std::string at;
  for (const auto& [name, extent] : summary.after.extents)
    at += librt::text(at.empty() ? " at " : ", ", name, "=", extent);
  print_line(
      librt::text("work        ", librt::grouped(static_cast<uint64_t>(summary.after.flops)), " flops", at));
  if (summary.peak.ok())
    print_line(
        librt::text("memory      ", librt::bytes_text(*summary.peak), " of working memory on cpu", at));
  else
    print_line(librt::text("memory      at least ", librt::bytes_text(summary.after.live_bytes),
                           " of working memory", at, " (no plan: ", summary.peak.status().message(), ")"));
  if (options.computes_in_16_bits()) print_line("precision   " + summary.precision.text());
  if (options.keep_accuracy && !options.quantizes()) print_line("accuracy    " + summary.accuracy.text());
  print_cost(options, summary.cost);
  print_coverage("on ", summary.coverage);
  if (!options.merge_adapter.empty())
    print_line(librt::text("merged      ", summary.merged, " weights of ", options.merge_adapter));
  if (options.lora) print_line(librt::convert::adapter_text(summary.adapters));
  print_shared(import.shared);
  if (options.train) print_line(librt::convert::training_text(summary.training));
  if (summary.budget) print_line(librt::convert::budget_text(*summary.budget, options));
  print_coverage("train_step on ", summary.training_coverage);
  if (options.quantizes() || options.training.quantize_aware)
    print_line(summary.quantization.summary() + (options.train ? ", while training" : ""));
  if (options.quant_report) std::fputs(summary.quantization.table().c_str(), stdout);
  if (options.cache_length > 0)
    print_line(librt::text("cache       ", options.cache_length, " positions, ", summary.cache.states,
                           " states in ", librt::bytes_text(summary.cache.bytes),
                           "; gone: ", joined(summary.cache.inputs), " and ", joined(summary.cache.outputs)));
  if (!options.output.empty())
    print_line(librt::text("file        ", options.output, ", ", librt::bytes_text(summary.file_bytes)));
  for (const VerifyLine& line : summary.verified)
    print_line(librt::text("verified    ", line.what, line.at.empty() ? "" : " at ", line.at, ", output '",
                           line.output, "': ", line.equal ? "equal" : "DIFFERENT", " (", line.text, ")"));
}

// A temporary file for --verify when no output file is requested; removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::error_code ignored;
    path_ =
        (std::filesystem::temp_directory_path(ignored) / librt::text("rtconvert-", getpid(), ".rt")).string();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

librt::convert::VerifyOptions measured_inputs(const Options& options) {
  return {.inputs = options.verify_inputs, .backend = {}, .seed = options.seed};
}

// Adds the nodes that --keep-accuracy finds to those that stay in f32; leaves the model optimized in f32.
Status keep_worst(const Options& options, librt::ModelGraph& model,
                  librt::compiler::PipelineOptions& pipeline, librt::DType precision, Summary& summary) {
  const std::vector<std::string> named = std::move(pipeline.keep_fp32);
  pipeline.keep_fp32.clear();
  RT_TRY(librt::compiler::optimize(model, pipeline, nullptr));
  progress("measuring each node in " + options.precision + "; large models take a while");
  librt::compiler::PipelineOptions half = pipeline;
  half.precision = precision;
  half.keep_fp32 = named;
  RT_ASSIGN(summary.accuracy,
            librt::convert::keep_accuracy(model, half, *options.keep_accuracy, measured_inputs(options)));
  pipeline.keep_fp32 = named;
  for (size_t i = 0; i < summary.accuracy.kept; ++i)
    pipeline.keep_fp32.push_back(librt::convert::exactly(summary.accuracy.nodes[i].name));
  return {};
}

/// Measures the output error of 16 bits for a model that is not optimized yet.
Status measure_16_bits(const Options& options, librt::ModelGraph model,
                       librt::compiler::PipelineOptions pipeline, librt::DType precision, Summary& summary) {
  librt::compiler::PipelineOptions exact = pipeline;
  exact.keep_fp32.clear();
  RT_TRY(librt::compiler::optimize(model, exact, nullptr));
  pipeline.precision = precision;
  summary.cost = librt::convert::cost_of_16_bits(model, pipeline, measured_inputs(options),
                                                 options.accuracy == "always");
  return {};
}

Status compile(const Options& options, librt::ModelGraph& model, Summary& summary) {
  summary.nodes_before = model.entries[0].graph.nodes.size();
  if (!options.checkpoint.empty()) RT_TRY(librt::convert::apply_checkpoint(model, options.checkpoint));
  if (!options.merge_adapter.empty()) {
    RT_ASSIGN(const auto merged, librt::convert::apply_adapter(model, options.merge_adapter));
    summary.merged = merged.size();
  }
  if (options.lora) RT_TRY(librt::compiler::add_adapters(model, *options.lora, &summary.adapters));
  const bool aware = options.training.quantize_aware || librt::convert::is_quantization_aware(model);
  librt::convert::KeptNames kept;
  if (options.training.quantize_aware) {
    RT_TRY(librt::convert::add_fake_quantization(model, options, summary.quantization));
  } else if (options.quantizes() && aware) {
    RT_ASSIGN(kept, librt::convert::release_weights(model, options));
  }
  if (options.train && options.memory == 0)
    RT_TRY(librt::convert::add_training(model, options, summary.training));
  const librt::ModelGraph original = options.verify ? model : librt::ModelGraph();
  librt::compiler::PipelineOptions pipeline;
  pipeline.disabled = options.disabled_passes;
  librt::compiler::PipelineReport passes;
  // The cache is detected in the f32 graph, before the precision pass changes it.
  const librt::DType precision =
      options.quantizes() ? librt::DType::F32 : *librt::dtype_from_name(options.precision);
  if (options.computes_in_16_bits()) pipeline.keep_fp32 = options.keep_fp32;
  if (options.keep_accuracy && !options.quantizes())
    RT_TRY(keep_worst(options, model, pipeline, precision, summary));
  else if (options.measures_accuracy() && options.computes_in_16_bits())
    RT_TRY(measure_16_bits(options, model, pipeline, precision, summary));
  if (options.cache_length == 0) pipeline.precision = precision;
  // Tensors are observed and quantized without residual additions fused into their epilogues.
  pipeline.residuals = options.calibrate.empty() && !aware;
  pipeline.widen = options.quantizes();
  if (options.memory > 0) {
    RT_ASSIGN(summary.budget, librt::convert::fit_training(model, options, pipeline, summary.training));
  } else {
    RT_TRY(librt::compiler::optimize(model, pipeline, &passes));
    pipeline.residuals = true;
  }
  if (options.cache_length > 0) {
    pipeline.precision = precision;
    RT_TRY(librt::compiler::add_cache(model, {options.cache_length, options.cache_pairs}, &summary.cache));
    RT_TRY(librt::compiler::optimize(model, pipeline, &passes));
  }
  if (options.quantizes()) {
    const bool measures = options.measures_accuracy() && options.calibrate.empty() && !aware;
    const librt::ModelGraph exact = measures ? model : librt::ModelGraph();
    RT_TRY(aware ? librt::convert::quantize_trained(model, kept, summary.quantization)
                 : librt::convert::quantize_model(model, options, summary.quantization));
    RT_TRY(librt::compiler::optimize(model, pipeline, &passes));
    if (measures)
      summary.cost = librt::convert::cost_of_change(exact, model, measured_inputs(options),
                                                    options.accuracy == "always");
    else
      summary.cost.error = summary.quantization.output_error;
  }
  if (options.verbose) progress(passes.table());
  RT_ASSIGN(summary.after, librt::compiler::report_of(model.entries[0].graph, model.states, options.dims));
  summary.precision = librt::compiler::precision_of(model.entries[0].graph);
  summary.coverage = librt::convert::coverage_of(model.entries[0].graph);
  if (options.train) summary.training_coverage = librt::convert::coverage_of(*model.entry("train_step"));
  summary.peak =
      librt::convert::planned_peak(model.entries[0].graph, model.states, summary.after.extents, "cpu");
  const TemporaryFile temporary;
  const std::string& path = options.output.empty() ? temporary.path() : options.output;
  if (!options.output.empty() || options.verify) {
    RT_TRY(librt::compiler::write_model(model, path));
    std::error_code ignored;
    summary.file_bytes = std::filesystem::file_size(path, ignored);
  }
  if (!options.verify) return {};
  const bool exact = options.precision == "fp32";
  progress("verifying with reference arithmetic; large models take a while");
  RT_ASSIGN(summary.verified,
            librt::convert::verify_file(original, path,
                                        {.inputs = options.verify_inputs,
                                         .backend = options.verify_backend,
                                         .seed = options.seed,
                                         .rtol = options.rtol.value_or(exact ? 1e-3 : 3e-2),
                                         .atol = options.atol.value_or(exact ? 1e-4 : 3e-2)}));
  return {};
}

// Writes trained weights to a file other than a compiled model.
int write_trained(const Options& options) {
  const bool exports = !options.export_onnx.empty();
  const std::string& output = exports ? options.export_onnx : options.save_adapter;
  const auto weights =
      exports ? librt::convert::export_trained(options) : librt::convert::save_adapter(options);
  if (!weights.ok()) return librt::tools::report_failure("rtconvert", weights.status());
  const std::string& source = options.merge_adapter.empty() ? options.checkpoint : options.merge_adapter;
  if (options.json)
    print_json({{"output", output}, {"weights", *weights}});
  else
    print_line(librt::text("file        ", output, ", ", *weights, " weights of ", source));
  return librt::tools::kFine;
}

/// zoo:NAME as an ONNX file.
int export_zoo(const Options& options) {
  librt::onnx::ImportReport unused;
  const auto model = load(options, unused);
  if (!model.ok()) return librt::tools::report_failure("rtconvert", model.status());
  const auto nodes = librt::onnx::write_onnx(*model, options.output);
  if (!nodes.ok()) return librt::tools::report_failure("rtconvert", nodes.status());
  if (options.json)
    print_json({{"output", options.output}, {"onnx_nodes", *nodes}});
  else
    print_line(librt::text("file        ", options.output, ", ", *nodes, " ONNX nodes"));
  return librt::tools::kFine;
}

int convert(const Options& options) {
  librt::onnx::ImportReport import;
  if (options.verbose) progress("reading " + options.input);
  auto model = load(options, import);
  if (!model.ok()) return report_import_failure(options, model.status(), import);
  const bool compiles = !options.output.empty() || options.verify;
  Summary summary;
  if (compiles)
    if (Status status = compile(options, *model, summary); !status.ok())
      return librt::tools::report_failure("rtconvert", status);
  if (options.inspect) std::fputs(librt::print(*model).c_str(), stdout);
  if (compiles && options.json) print_json(summary_json(options, import, summary));
  if (compiles && !options.json) print_summary(options, import, summary);
  for (const VerifyLine& line : summary.verified)
    if (!line.equal) return librt::tools::kDifferent;
  return librt::tools::kFine;
}

int command_line(int argc, char** argv) {
  const librt::convert::Parsed parsed = librt::convert::parse_options(argc, argv);
  if (parsed.leave) return parsed.exit_code;
  if (parsed.options.list_ops) return list_ops(parsed.options.json);
  if (parsed.options.list_passes) return list_passes();
  const bool writes_weights = !parsed.options.export_onnx.empty() || !parsed.options.save_adapter.empty();
  if (writes_weights) return write_trained(parsed.options);
  return parsed.options.writes_onnx() ? export_zoo(parsed.options) : convert(parsed.options);
}

}  // namespace

int main(int argc, char** argv) {
  return librt::tools::run_program("rtconvert", argc, argv, command_line);
}
