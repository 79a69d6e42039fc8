#include "tools/convert/summary.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/compiler/name_list.h"

namespace librt::convert {
namespace {

Json coverage_json(const Coverage& backend) {
  return {{"nodes", backend.nodes},
          {"host", backend.host},
          {"elsewhere", backend.elsewhere},
          {"depends", backend.depends}};
}

Json quantization_json(const QuantizationReport& report) {
  Json json;
  json["matmuls"] = report.matmuls;
  json["tables"] = report.tables;
  if (report.rows > 0) json["rows"] = report.rows;
  if (!report.infinite.empty()) json["infinite"] = report.infinite;
  if (!report.zeros.empty()) json["zeros"] = report.zeros;
  if (report.accuracy_f32 >= 0)
    json["accuracy"] = {{"f32", report.accuracy_f32}, {"int8", report.accuracy_int8}};
  if (report.output_error >= 0) json["output_error"] = report.output_error;
  for (const auto& line : report.lines)
    json["nodes"].push_back(
        {{"name", line.name}, {"op", line.op}, {"decibels", line.decibels}, {"kept_f32", line.kept}});
  return json;
}

/// Collects lines.
class Lines {
 public:
  void add(const std::string& line) { append(text_, line, "\n"); }
  void add_block(const std::string& lines) { text_ += lines; }
  void add_coverage(const char* what, const std::vector<Coverage>& coverage);
  void add_shared(const std::vector<onnx::SharedWeight>& shared);
  void add_cost(const Options& options, const PrecisionCost& cost);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void Lines::add_coverage(const char* what, const std::vector<Coverage>& coverage) {
  for (const auto& backend : coverage)
    add(text(what, backend.backend, std::string(9 - std::min<size_t>(8, backend.backend.size()), ' '),
             backend.text()));
}

/// Which weights that an exporter stored once were split and which stay tied.
void Lines::add_shared(const std::vector<onnx::SharedWeight>& shared) {
  for (const onnx::SharedWeight& weight : shared) {
    if (weight.parameters.empty()) {
      add(text("tied        '", weight.name, "' stays one weight: ", weight.kept));
      continue;
    }
    add(text("untied      '", weight.name, "', which the exporter stored once, is ", weight.parameters.size(),
             " weights: ", compiler::listed(weight.parameters, 8)));
  }
}

std::string error_text(const PrecisionCost& cost) {
  char error[32];
  std::snprintf(error, sizeof error, "%.2g", cost.error);
  return error;
}

const char* source_of_inputs(const Options& options) {
  return options.verify_inputs.empty() && !options.calibrates() ? " on random inputs" : "";
}

/// The accuracy cost of the precision.
void Lines::add_cost(const Options& options, const PrecisionCost& cost) {
  if (!options.measures_accuracy()) return;
  if (cost.error < 0) {
    if (!cost.why.empty()) add("accuracy    not measured: " + cost.why);
  } else if (!options.keep_accuracy && !options.calibrates()) {
    add(text("accuracy    error of the outputs ", error_text(cost), source_of_inputs(options)));
  }
}

}  // namespace

std::vector<std::string> warnings_of(const Options& options, const onnx::ImportReport& import,
                                     const Summary& summary) {
  std::vector<std::string> warnings = import.warnings;
  if (!summary.unchecked_batch.empty())
    warnings.push_back(text("--open-batch: not checked whether the samples of a batch stay independent: ",
                            summary.unchecked_batch));
  if (!options.measures_accuracy() || !summary.cost.is_ruinous()) return warnings;
  const char* on = source_of_inputs(options);
  const bool offers = options.computes_in_16_bits() || options.calibrates();
  warnings.push_back(
      text("--precision ", options.precision, " changes the outputs by ", error_text(summary.cost),
           " of their largest value", on, ", which may ruin the model; ",
           offers ? "--keep-accuracy 0.01 keeps the nodes in fp32 that cause it"
                  : "--calibrate DATA with --precision int8 --keep-accuracy 0.01, --keep-fp32 PATTERN or "
                    "another precision help",
           *on != 0 ? "; --input NAME=FILE measures on real data" : ""));
  return warnings;
}

std::string external_data_line(const std::string& file) {
  return text("weights     in ", file, ", which belongs beside the model");
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Json summary_json(const Options& options, const onnx::ImportReport& import, const Summary& summary) {
  Json json;
  json["model"] = options.bytes.empty() ? Json(options.input) : Json();
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
                        {"single", summary.training.single},
                        {"detached", summary.training.detached},
                        {"trained_elements", summary.training.trained_elements}};
  if (summary.budget)
    json["memory"] = {{"bytes", summary.budget->total()},
                      {"states", summary.budget->states},
                      {"batch", summary.budget->batch},
                      {"micro_batch", summary.budget->micro_batch},
                      {"recomputed_nodes", summary.budget->recomputed_nodes},
                      {"recomputed_flops", summary.budget->recomputed_flops},
                      {"optimizer_state", name_of(summary.budget->optimizer_state)}};
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
  if (summary.onnx)
    json["onnx"] = {
        {"nodes", summary.onnx->nodes}, {"opset", summary.onnx->opset}, {"states", summary.onnx->states}};
  if (summary.onnx && !summary.onnx->weights.empty()) json["external_data"] = summary.onnx->weights;
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

std::string summary_text(const Options& options, const onnx::ImportReport& import, const Summary& summary) {
  Lines lines;
  if (import.onnx_nodes > 0)
    lines.add(text("nodes       ", import.onnx_nodes, " in ONNX, ", summary.nodes_before, " imported, ",
                   summary.after.nodes, " after optimization"));
  else
    lines.add(text("nodes       ", summary.nodes_before, ", ", summary.after.nodes, " after optimization"));
  lines.add(text("parameters  ", grouped(summary.after.parameters), " in ",
                 bytes_text(summary.after.parameter_bytes)));
  std::string at;
  for (const auto& [name, extent] : summary.after.extents)
    at += text(at.empty() ? " at " : ", ", name, "=", extent);
  lines.add(text("work        ", grouped(static_cast<uint64_t>(summary.after.flops)), " flops", at));
  if (summary.peak.ok())
    lines.add(text("memory      ", bytes_text(*summary.peak), " of working memory on cpu", at));
  else
    lines.add(text("memory      at least ", bytes_text(summary.after.live_bytes), " of working memory", at,
                   " (no plan: ", summary.peak.status().message(), ")"));
  if (options.computes_in_16_bits()) lines.add("precision   " + summary.precision.text());
  if (options.keep_accuracy && !options.quantizes()) lines.add("accuracy    " + summary.accuracy.text());
  lines.add_cost(options, summary.cost);
  lines.add_coverage("on ", summary.coverage);
  if (!options.merge_adapter.empty())
    lines.add(text("merged      ", summary.merged, " weights of ", options.merge_adapter));
  if (options.lora) lines.add(adapter_text(summary.adapters));
  lines.add_shared(import.shared);
  if (options.train) lines.add(training_text(summary.training));
  if (summary.budget) lines.add(budget_text(*summary.budget, options));
  lines.add_coverage("train_step on ", summary.training_coverage);
  if (options.quantizes() || options.training.quantize_aware)
    lines.add(summary.quantization.summary() + (options.train ? ", while training" : ""));
  if (options.quant_report) lines.add_block(summary.quantization.table());
  if (options.cache_length > 0)
    lines.add(text("cache       ", options.cache_length, " positions, ", summary.cache.states, " states in ",
                   bytes_text(summary.cache.bytes), "; gone: ", compiler::listed(summary.cache.inputs),
                   " and ", compiler::listed(summary.cache.outputs)));
  if (!options.output.empty())
    lines.add(text("file        ", options.output, ", ", bytes_text(summary.file_bytes)));
  if (summary.onnx)
    lines.add(text("onnx        ", summary.onnx->nodes, " nodes of opset ", summary.onnx->opset));
  if (summary.onnx && !summary.onnx->weights.empty()) lines.add(external_data_line(summary.onnx->weights));
  if (summary.onnx && !summary.onnx->states.empty())
    lines.add(text("states      inputs NAME, for the next run outputs NAME.next: ",
                   compiler::listed(summary.onnx->states)));
  for (const VerifyLine& line : summary.verified)
    lines.add(text("verified    ", line.what, line.at.empty() ? "" : " at ", line.at, ", output '",
                   line.output, "': ", line.equal ? "equal" : "DIFFERENT", " (", line.text, ")"));
  return lines.take();
}

}  // namespace librt::convert
