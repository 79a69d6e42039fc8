// ONNX's operator conformance cases and small models: converts, runs and compares each, and prints counts.
//
// A case in the skip file is run as well; if it passes, the run fails, so that the list stays accurate. With
// --refuse the cases are only converted: each converts, or is rejected with a list of unsupported operators.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "tests/onnx_node/case.h"
#include "tests/onnx_node/runner.h"
#include "tools/cli/command_line.h"
#include "tools/convert/run_session.h"
#include "tools/onnx/import.h"

namespace {

namespace fs = std::filesystem;
using librt::test::Case;
using librt::tools::Array;

struct Settings {
  std::string data;
  std::string cases;
  std::string skips;
  std::string backend = "reference";
  std::string only;
  double atol = 0;
  std::vector<int> tiers = {1};
  bool strict = false;
  bool verbose = false;
  bool write_skips = false;
  bool unbaked = false;
  bool refuse = false;
};

librt::onnx::ConstantInput baked_input(const Array& array) {
  return {.info = {.dtype = array.type, .shape = librt::Shape(std::span(array.dims))},
          .data = librt::Blob::copy_of(array.bytes.data(), array.bytes.size())};
}

std::optional<std::vector<Array>> run_on(const Settings& settings, librt::ModelGraph& model,
                                         std::span<const Array> inputs, std::string& error) {
  if (settings.backend == "reference") return librt::test::run_reference(model, inputs, error);
  if (settings.backend == "compiled") return librt::test::run_compiled_reference(model, inputs, error);
  const auto file = librt::test::compile(model, error);
  if (!file) return std::nullopt;
  return librt::convert::run_session(*file, settings.backend, settings.strict, inputs, error);
}

// Empty when the model converts or is rejected with the names of unsupported nodes, else the message.
std::string refuse_case(const Settings& settings, const Case& rules) {
  librt::onnx::ImportReport report;
  const auto model = librt::onnx::import_onnx(settings.data + "/" + rules.name + "/model.onnx", {}, report);
  if (model.ok()) return {};
  const bool clear = model.status().code() == librt::Code::Unsupported && !model.status().message().empty();
  if (!clear)
    return librt::text("expected a refusal, found ", librt::code_name(model.status().code()), ": ",
                       model.status().message());
  for (const auto& node : report.unsupported)
    if (node.op.empty() || node.reason.empty()) return "a node is refused without its operator or a reason";
  return {};
}

// Empty when the case passes, else the reason for failure.
std::string run_case(const Settings& settings, Case rules) {
  rules.absolute = std::max(rules.absolute, settings.atol);
  const std::string folder = settings.data + "/" + rules.name;
  std::string error;
  auto inputs = librt::test::read_tensors(folder + "/test_data_set_0", "input", error);
  auto wanted = librt::test::read_tensors(folder + "/test_data_set_0", "output", error);
  if (!inputs || !wanted) return "data: " + error;

  librt::onnx::ImportReport report;
  librt::onnx::ImportOptions options;
  for (const auto& input : *inputs)
    for (const std::string& name : rules.baked)
      if (!settings.unbaked && input && input->name == name) options.constants[name] = baked_input(*input);
  auto model = librt::onnx::import_onnx(folder + "/model.onnx", options, report);
  if (!model.ok())
    return report.unsupported.empty() ? "import: " + model.status().message()
                                      : report.unsupported[0].op + ": " + report.unsupported[0].reason;

  // Test data is in the order of ONNX's inputs; baked inputs have become constants.
  std::vector<Array> given;
  for (librt::ValueId id : model->entries[0].graph.inputs) {
    const std::string& name = model->entries[0].graph[id].name;
    for (const auto& input : *inputs)
      if (input && input->name == name) given.push_back(*input);
  }
  const size_t wanted_inputs = model->entries[0].graph.inputs.size();
  if (given.empty() && inputs->size() == wanted_inputs)  // old data uses other names, or none
    for (const auto& input : *inputs)
      if (input) given.push_back(*input);
  if (given.size() != wanted_inputs) return "the names of the inputs do not match the data";
  const auto outputs = run_on(settings, *model, given, error);
  if (!outputs) return error;
  for (size_t i = 0; i < outputs->size() && i < wanted->size(); ++i) {
    if (!(*wanted)[i]) continue;
    const std::string found = librt::test::difference((*outputs)[i], *(*wanted)[i], rules);
    if (!found.empty()) return librt::text("output ", i, ": ", found);
  }
  return outputs->size() < wanted->size() ? "fewer outputs than wanted" : "";
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

struct Counts {
  int passed = 0;
  int skipped = 0;
  int failed = 0;
  int stale = 0;
};

Counts run_all(const Settings& settings, const std::vector<Case>& cases,
               const std::map<std::string, std::string>& skips) {
  Counts counts;
  for (const Case& rules : cases) {
    if (std::find(settings.tiers.begin(), settings.tiers.end(), rules.tier) == settings.tiers.end()) continue;
    if (!settings.only.empty() && rules.name.find(settings.only) == std::string::npos) continue;
    if (!fs::exists(settings.data + "/" + rules.name)) continue;
    const std::string reason = settings.refuse ? refuse_case(settings, rules) : run_case(settings, rules);
    const auto skip = skips.find(rules.name);
    if (reason.empty() && skip != skips.end()) {
      ++counts.stale;
      std::cout << "PASSES BUT IS SKIPPED " << rules.name << " (" << skip->second << ")\n";
    } else if (reason.empty()) {
      ++counts.passed;
      if (settings.verbose) std::cout << "ok " << rules.name << "\n";
    } else if (skip != skips.end()) {
      ++counts.skipped;
      if (settings.verbose) std::cout << "skip " << rules.name << ": " << skip->second << "\n";
    } else {
      ++counts.failed;
      std::cout << (settings.write_skips ? rules.name + "\t" : "FAIL " + rules.name + ": ")
                << first_line(reason) << std::endl;
    }
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  librt::tools::CommandLine app("Runs ONNX's operator conformance cases");
  app.add_option("--data", settings.data, "Folder with one folder per case")->required();
  app.add_option("--cases", settings.cases, "cases.tsv or models.tsv")->required();
  app.add_option("--skips", settings.skips, "File of cases that are known to fail, with reasons");
  app.add_option(
      "--backend", settings.backend,
      "reference: the imported graph; compiled: optimized, written and read; else a session's backend");
  app.add_option("--tier", settings.tiers, "Tiers to run")->delimiter(',');
  app.add_option("--only", settings.only, "Only cases whose name contains this");
  app.add_option("--atol", settings.atol, "Smallest absolute tolerance");
  app.add_flag("--strict", settings.strict, "No node may fall back to another backend");
  app.add_flag("--verbose", settings.verbose, "Also name what passes and what is skipped");
  app.add_flag("--refuse", settings.refuse, "Only convert; a refusal must name what is not supported");
  app.add_flag("--unbaked", settings.unbaked,
               "Operands that give shapes stay inputs instead of becoming constants");
  app.add_flag("--write-skips", settings.write_skips, "Print failures as lines for a skip file");
  if (const auto code = app.parse(argc, argv)) return *code;

  constexpr int kSkipped = 77;
  if (!fs::exists(settings.data) || !fs::exists(settings.cases)) {
    std::cout << "skipped: the conformance cases are not there (" << settings.data << ", " << settings.cases
              << ")\n";
    return kSkipped;
  }
  std::string error;
  std::map<std::string, std::string> skips;
  if (!settings.skips.empty()) skips = librt::test::read_skips(settings.skips, error);
  const std::vector<Case> cases = librt::test::read_cases(settings.cases, error);
  if (!error.empty()) {
    std::cerr << error << "\n";
    return 2;
  }
  const Counts counts = run_all(settings, cases, skips);
  if (!settings.write_skips)
    std::cout << (settings.refuse ? "converted or refused" : settings.backend) << ": " << counts.passed
              << " passed, " << counts.failed << " failed, " << counts.skipped << " skipped, " << counts.stale
              << " skipped but passing\n";
  return counts.failed == 0 && counts.stale == 0 ? 0 : 1;
}
