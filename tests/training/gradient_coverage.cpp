// Which ONNX operators are differentiable: every conformance case of tiers 1 and 2 with float inputs and
// outputs is imported and differentiated, none is run.
//
//   gradient_coverage --data CASES --cases cases.tsv --gaps gradient_gaps.txt [--verbose]
//
// An operator counts when every unlisted case can be differentiated. The gaps file lists operators or cases
// that cannot, with reasons; an entry that is no longer a gap fails.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "tests/onnx_node/case.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/compiler/train/training_graph.h"
#include "tools/onnx/import.h"

namespace {

namespace fs = std::filesystem;
using librt::test::Case;

struct Settings {
  std::string data, cases, gaps;
  bool verbose = false;
};

enum class Verdict { Differentiable, NoFloats, NotImported, Gap };

Verdict judge(const Settings& settings, const Case& rules, std::string& reason) {
  const std::string folder = settings.data + "/" + rules.name;
  const auto inputs = librt::test::read_tensors(folder + "/test_data_set_0", "input", reason);
  if (!inputs) return Verdict::NotImported;
  librt::onnx::ImportOptions options;
  for (const auto& input : *inputs)
    for (const std::string& name : rules.baked)
      if (input && input->name == name)
        options.constants[name] = {
            .info = {.dtype = input->type, .shape = librt::Shape(std::span(input->dims))},
            .data = librt::Blob::copy_of(input->bytes.data(), input->bytes.size())};
  librt::onnx::ImportReport report;
  auto model = librt::onnx::import_onnx(folder + "/model.onnx", options, report);
  if (!model.ok()) return Verdict::NotImported;
  const librt::Graph& graph = model->entries[0].graph;
  const auto any_float = [&](const std::vector<librt::ValueId>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](librt::ValueId id) { return librt::is_float(graph[id].dtype); });
  };
  if (!any_float(graph.inputs) || !any_float(graph.outputs)) return Verdict::NoFloats;
  const librt::Status status = librt::compiler::add_gradient_entry(*model);
  if (status.ok()) return Verdict::Differentiable;
  reason = status.message();
  return Verdict::Gap;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  librt::tools::CommandLine app("Counts the ONNX operators that have gradients");
  app.add_option("--data", settings.data, "Folder with one folder per case")->required();
  app.add_option("--cases", settings.cases, "cases.tsv")->required();
  app.add_option("--gaps", settings.gaps, "Operators or cases without a gradient, with reasons")->required();
  app.add_flag("--verbose", settings.verbose, "Also name the operators that have one");
  if (const auto code = app.parse(argc, argv)) return *code;
  if (!fs::exists(settings.data) || !fs::exists(settings.cases)) {
    std::printf("SKIPPED: the conformance cases are not there (%s, %s)\n", settings.data.c_str(),
                settings.cases.c_str());
    return 77;
  }
  std::string error;
  const auto gaps = librt::test::read_skips(settings.gaps, error);
  const auto cases = librt::test::read_cases(settings.cases, error);
  if (!error.empty()) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return librt::tools::kBadInput;
  }
  std::set<std::string> differentiable, without, used;
  size_t failed = 0, differentiated = 0;
  for (const Case& rules : cases) {
    if (rules.tier > 2) continue;
    std::string reason;
    const Verdict verdict = judge(settings, rules, reason);
    const bool named = gaps.contains(rules.name), listed = named || gaps.contains(rules.op);
    if (verdict == Verdict::Differentiable) {
      differentiable.insert(rules.op);
      ++differentiated;
      if (named) std::printf("DIFFERENTIABLE BUT LISTED %s\n", rules.name.c_str());
      failed += named;
    } else if (verdict == Verdict::Gap) {
      without.insert(rules.op);
      used.insert(named ? rules.name : rules.op);
      if (!listed)
        std::printf("NO GRADIENT %s (%s): %s\n", rules.name.c_str(), rules.op.c_str(), reason.c_str());
      failed += !listed;
    }
  }
  for (const auto& [gap, reason] : gaps)
    if (!used.contains(gap)) {
      std::printf("LISTED BUT NO GAP %s (%s)\n", gap.c_str(), reason.c_str());
      ++failed;
    }
  if (settings.verbose)
    for (const std::string& op : differentiable)
      std::printf("%s%s\n", op.c_str(), without.contains(op) ? " (not in every form)" : "");
  std::printf("%zu operators with gradients, %zu without in some or every form; %zu cases differentiated\n",
              differentiable.size(), without.size(), differentiated);
  constexpr size_t kLeast = 90;
  return failed == 0 && differentiable.size() >= kLeast ? librt::tools::kFine : librt::tools::kDifferent;
}
