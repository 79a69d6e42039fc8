#include "tools/rtconvert/summary.h"

#include <algorithm>

#include "tools/rtconvert/lines.h"

namespace librt::convert {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) append(all, text(all.empty() ? "" : ", ", name));
  return all;
}

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
  if (report.accuracy_f32 >= 0)
    json["accuracy"] = {{"f32", report.accuracy_f32}, {"int8", report.accuracy_int8}};
  if (report.output_error >= 0) json["output_error"] = report.output_error;
  for (const auto& line : report.lines)
    json["nodes"].push_back(
        {{"name", line.name}, {"op", line.op}, {"decibels", line.decibels}, {"kept_f32", line.kept}});
  return json;
}

Json summary_json(const Options& options, const onnx::ImportReport& import, const Summary& summary) {
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

void print_coverage(const char* what, const std::vector<Coverage>& coverage) {
  for (const auto& backend : coverage)
    print_line(text(what, backend.backend, std::string(9 - std::min<size_t>(8, backend.backend.size()), ' '),
                    backend.text()));
}

/// Prints which weights that an exporter stored once were split and which stay tied.
void print_shared(const std::vector<onnx::SharedWeight>& shared) {
  constexpr size_t kMost = 8;
  for (const onnx::SharedWeight& weight : shared) {
    if (weight.parameters.empty()) {
      print_line(text("tied        '", weight.name, "' stays one weight: ", weight.kept));
      continue;
    }
    const size_t count = weight.parameters.size();
    const std::vector<std::string> some(
        weight.parameters.begin(),
        weight.parameters.begin() + static_cast<std::ptrdiff_t>(std::min(count, kMost)));
    print_line(text("untied      '", weight.name, "', which the exporter stored once, is ", count,
                    " weights: ", joined(some), count > kMost ? text(" and ", count - kMost, " more") : ""));
  }
}

/// Prints the accuracy cost of the precision, and a warning if it is large.
void print_cost(const Options& options, const PrecisionCost& cost) {
  if (!options.measures_accuracy()) return;
  if (cost.error < 0) {
    if (!cost.why.empty()) print_line("accuracy    not measured: " + cost.why);
    return;
  }
  char error[32];
  std::snprintf(error, sizeof error, "%.2g", cost.error);
  const char* on = options.verify_inputs.empty() && options.calibrate.empty() ? " on random inputs" : "";
  if (!options.keep_accuracy && options.calibrate.empty())
    print_line(text("accuracy    error of the outputs ", error, on));
  if (!cost.is_ruinous()) return;
  const bool offers = options.computes_in_16_bits() || !options.calibrate.empty();
  progress(text("warning: --precision ", options.precision, " changes the outputs by ", error,
                " of their largest value", on, ", which may ruin the model; ",
                offers
                    ? "--keep-accuracy 0.01 keeps the nodes in fp32 that cause it"
                    : "--calibrate DATA with --precision int8 --keep-accuracy 0.01, --keep-fp32 PATTERN or "
                      "another precision help",
                *on != 0 ? "; --input NAME=FILE measures on real data" : ""));
}

}  // namespace

void print_summary(const Options& options, const onnx::ImportReport& import, const Summary& summary) {
  for (const std::string& warning : import.warnings) progress("warning: " + warning);
  if (import.onnx_nodes > 0)
    print_line(text("nodes       ", import.onnx_nodes, " in ONNX, ", summary.nodes_before, " imported, ",
                    summary.after.nodes, " after optimization"));
  else
    print_line(text("nodes       ", summary.nodes_before, ", ", summary.after.nodes, " after optimization"));
  print_line(text("parameters  ", grouped(summary.after.parameters), " in ",
                  bytes_text(summary.after.parameter_bytes)));
  std::string at;
  for (const auto& [name, extent] : summary.after.extents)
    at += text(at.empty() ? " at " : ", ", name, "=", extent);
  print_line(text("work        ", grouped(static_cast<uint64_t>(summary.after.flops)), " flops", at));
  if (summary.peak.ok())
    print_line(text("memory      ", bytes_text(*summary.peak), " of working memory on cpu", at));
  else
    print_line(text("memory      at least ", bytes_text(summary.after.live_bytes), " of working memory", at,
                    " (no plan: ", summary.peak.status().message(), ")"));
  if (options.computes_in_16_bits()) print_line("precision   " + summary.precision.text());
  if (options.keep_accuracy && !options.quantizes()) print_line("accuracy    " + summary.accuracy.text());
  print_cost(options, summary.cost);
  print_coverage("on ", summary.coverage);
  if (!options.merge_adapter.empty())
    print_line(text("merged      ", summary.merged, " weights of ", options.merge_adapter));
  if (options.lora) print_line(adapter_text(summary.adapters));
  print_shared(import.shared);
  if (options.train) print_line(training_text(summary.training));
  if (summary.budget) print_line(budget_text(*summary.budget, options));
  print_coverage("train_step on ", summary.training_coverage);
  if (options.quantizes() || options.training.quantize_aware)
    print_line(summary.quantization.summary() + (options.train ? ", while training" : ""));
  if (options.quant_report) std::fputs(summary.quantization.table().c_str(), stdout);
  if (options.cache_length > 0)
    print_line(text("cache       ", options.cache_length, " positions, ", summary.cache.states, " states in ",
                    bytes_text(summary.cache.bytes), "; gone: ", joined(summary.cache.inputs), " and ",
                    joined(summary.cache.outputs)));
  if (!options.output.empty())
    print_line(text("file        ", options.output, ", ", bytes_text(summary.file_bytes)));
  for (const VerifyLine& line : summary.verified)
    print_line(text("verified    ", line.what, line.at.empty() ? "" : " at ", line.at, ", output '",
                    line.output, "': ", line.equal ? "equal" : "DIFFERENT", " (", line.text, ")"));
}

void print_summary_json(const Options& options, const onnx::ImportReport& import, const Summary& summary) {
  print_json(summary_json(options, import, summary));
}

}  // namespace librt::convert
