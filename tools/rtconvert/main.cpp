// rtconvert: compiles a model into a .rt file.
//
// Knows: which of its tasks the command line asks for, and where models come from.
#include "runtime/graph/print.h"
#include "runtime/model/reader.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/program.h"
#include "tools/compiler/zoo/zoo.h"
#include "tools/onnx/graph_export.h"
#include "tools/onnx/import.h"
#include "tools/rtconvert/compile.h"
#include "tools/rtconvert/constants.h"
#include "tools/rtconvert/lines.h"
#include "tools/rtconvert/options.h"
#include "tools/rtconvert/summary.h"
#include "tools/rtconvert/training.h"

namespace librt::convert {
namespace {

bool has_suffix(const std::string& text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.ends_with(suffix);
}

int list_ops(bool json) {
  Json all = Json::array();
  for (const auto& op : onnx::supported_ops()) {
    const bool newest = op.last_opset == onnx::kNewestOpset;
    if (json)
      all.push_back({{"domain", op.domain},
                     {"op", op.op},
                     {"first_opset", op.first_opset},
                     {"last_opset", newest ? Json() : Json(op.last_opset)}});
    else
      print_line(text(op.domain, " ", op.op, " ", op.first_opset, newest ? "+" : text("-", op.last_opset)));
  }
  if (json) print_json(all);
  return tools::kFine;
}

int list_passes() {
  for (const auto& pass : compiler::all_passes()) print_line(text(pass.name, ": ", pass.summary));
  return tools::kFine;
}

Result<ModelGraph> load(const Options& options, onnx::ImportReport& report) {
  constexpr std::string_view kZoo = "zoo:";
  const bool onnx = !options.input.starts_with(kZoo) && !has_suffix(options.input, ".rt");
  if (onnx) {
    onnx::ImportOptions import;
    import.dims = options.dims;
    import.open_batch = options.open_batch;
    import.caches_grow = options.cache_length > 0;
    RT_ASSIGN(import.constants, read_constants(options.constants));
    import.untie = options.changes_weights();
    import.tie = options.tie;
    auto model = onnx::import_onnx(options.input, import, report);
    if (options.train) report.warnings.insert(report.warnings.end(), report.lost.begin(), report.lost.end());
    return model;
  }
  auto model = options.input.starts_with(kZoo) ? compiler::build_zoo_model(options.input.substr(kZoo.size()))
                                               : load_model(options.input);
  if (!model.ok()) return model;
  for (const auto& [name, extent] : options.dims) RT_TRY(compiler::bind_symbol(*model, name, extent));
  return model;
}

/// With --json also as an object on stdout. code: of rt.h.
int report_failure(const Options& options, const Status& status, Json details = Json::object()) {
  if (options.json) {
    details.update({{"error", status.message()}, {"code", static_cast<int>(status.code())}});
    print_json(details);
  }
  return tools::report_failure("rtconvert", status);
}

// The table of nodes that cannot be converted, or the plain error.
int report_import_failure(const Options& options, const Status& status, const onnx::ImportReport& report) {
  Json nodes = Json::array();
  for (const auto& node : report.unsupported)
    nodes.push_back({{"node", node.name},
                     {"op", node.op},
                     {"domain", node.domain},
                     {"opset", node.opset},
                     {"dtype", node.dtype},
                     {"reason", node.reason},
                     {"help", node.help}});
  if (!options.json && !report.unsupported.empty())
    std::fputs(onnx::table_of(report.unsupported).c_str(), stdout);
  return report_failure(options, status, {{"unsupported", nodes}});
}

// Writes trained weights to a file other than a compiled model.
int write_trained(const Options& options) {
  const bool exports = !options.export_onnx.empty();
  const std::string& output = exports ? options.export_onnx : options.save_adapter;
  const auto weights = exports ? export_trained(options) : save_adapter(options);
  if (!weights.ok()) return report_failure(options, weights.status());
  const std::string& source = options.merge_adapter.empty() ? options.checkpoint : options.merge_adapter;
  if (options.json)
    print_json({{"output", output}, {"weights", *weights}});
  else
    print_line(text("file        ", output, ", ", *weights, " weights of ", source));
  return tools::kFine;
}

/// zoo:NAME as an ONNX file.
int export_zoo(const Options& options) {
  onnx::ImportReport unused;
  const auto model = load(options, unused);
  if (!model.ok()) return report_failure(options, model.status());
  const auto nodes = onnx::write_onnx(*model, options.output);
  if (!nodes.ok()) return report_failure(options, nodes.status());
  if (options.json)
    print_json({{"output", options.output}, {"onnx_nodes", *nodes}});
  else
    print_line(text("file        ", options.output, ", ", *nodes, " ONNX nodes"));
  return tools::kFine;
}

int convert(const Options& options) {
  onnx::ImportReport import;
  if (options.verbose) progress("reading " + options.input);
  auto model = load(options, import);
  if (!model.ok()) return report_import_failure(options, model.status(), import);
  const bool compiles = !options.output.empty() || options.verify;
  Summary summary;
  if (compiles)
    if (Status status = compile(options, *model, summary); !status.ok())
      return report_failure(options, status);
  if (options.inspect) std::fputs(print(*model).c_str(), stdout);
  if (compiles && options.json) print_summary_json(options, import, summary);
  if (compiles && !options.json) print_summary(options, import, summary);
  for (const VerifyLine& line : summary.verified)
    if (!line.equal) return tools::kDifferent;
  return tools::kFine;
}

int command_line(int argc, char** argv) {
  const Parsed parsed = parse_options(argc, argv);
  if (parsed.leave) return parsed.exit_code;
  if (parsed.options.list_ops) return list_ops(parsed.options.json);
  if (parsed.options.list_passes) return list_passes();
  const bool writes_weights = !parsed.options.export_onnx.empty() || !parsed.options.save_adapter.empty();
  if (writes_weights) return write_trained(parsed.options);
  return parsed.options.writes_onnx() ? export_zoo(parsed.options) : convert(parsed.options);
}

}  // namespace
}  // namespace librt::convert

int main(int argc, char** argv) {
  return librt::tools::run_program("rtconvert", argc, argv, librt::convert::command_line);
}
