// rtbench compare: two studies of one model.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/data/file.h"
#include "tools/rtbench/commands/commands.h"
#include "tools/rtbench/report/compare_studies.h"
#include "tools/rtbench/report/study_json.h"

namespace librt::bench {
namespace {

constexpr size_t kLargestStudy = size_t{256} << 20;

Result<Study> read_study(const std::string& path) {
  RT_ASSIGN(const tools::Bytes bytes, tools::read_file(path, kLargestStudy));
  auto study = parse_study({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!study.ok()) return Status(study.status()).in(path);
  return study;
}

/// "5%" or "0.05" as a share; negative: neither.
double share_of(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value)) return -1;
  if (*end == '%') {
    value /= 100;
    ++end;
  }
  return *end == '\0' && value < 10 ? value : -1;
}

}  // namespace

int compare_command(int argc, char** argv) {
  tools::CommandLine app(
      "Compares two studies of one model: what became faster or slower by more than the tolerance, with "
      "certainty. Exit code 1 if something became slower, fails now, or has too large an error.");
  std::string old_path, new_path, tolerance_text = "5%";
  bool json = false;
  app.add_option("OLD.json", old_path, "Study before the change: of rtbench study --json, or a stored one")
      ->required();
  app.add_option("NEW.json", new_path, "Study after it")->required();
  app.add_option("--tolerance", tolerance_text, "A change of time that does not matter: 5% or 0.05")
      ->capture_default_str();
  app.add_flag("--json", json, "The comparison as JSON");
  app.set_up_help(
      {.program = "rtbench compare",
       .examples = {"rtbench compare before.json after.json",
                    "rtbench compare a.json b.json --tolerance 10%"},
       .notes = {
           "The test: the 95 % interval of the ratio of two medians, from the intervals of both and 1 % for "
           "each of the two processes, widened for the number of comparisons (Bonferroni). Slower means "
           "that all of it lies beyond the tolerance. Each series is judged as a whole as well, by the "
           "geometric mean over its batch sizes."}});
  if (const auto code = app.parse(argc, argv)) return *code;
  const double tolerance = share_of(tolerance_text);
  if (tolerance < 0)
    return app.refuse({"--tolerance", "expected a share such as 5% or 0.05, found '" + tolerance_text + "'"});
  const auto before = read_study(old_path);
  if (!before.ok()) return tools::report_failure("rtbench", before.status());
  const auto after = read_study(new_path);
  if (!after.ok()) return tools::report_failure("rtbench", after.status());
  const auto comparison = compare_studies(*before, *after, tolerance);
  if (!comparison.ok()) return tools::report_failure("rtbench", comparison.status());
  std::fputs(
      (json ? comparison_json(*comparison, tolerance) : comparison_text(*comparison, tolerance)).c_str(),
      stdout);
  return comparison->regressed ? tools::kDifferent : tools::kFine;
}

}  // namespace librt::bench
