#include "tools/rtbench/report/markdown.h"

#include <algorithm>
#include <cmath>

#include "tools/rtbench/report/labels.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {
using Rows = std::vector<std::vector<std::string>>;
}  // namespace

std::string markdown_text(const std::string& text) {
  std::string out;
  for (const char byte : printable(text)) {
    if (byte == '<') {
      out += "&lt;";
      continue;
    }
    if (std::string_view("\\`*_[]|#>~&").find(byte) != std::string_view::npos) out += '\\';
    out += byte;
  }
  return out;
}

std::string markdown_table(const Rows& rows, size_t left) {
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    out += "|";
    for (const std::string& cell : rows[r]) out += " " + markdown_text(cell) + " |";
    out += "\n";
    if (r > 0) continue;
    out += "|";
    for (size_t i = 0; i < rows[0].size(); ++i) out += i < left ? "---|" : "---:|";
    out += "\n";
  }
  return out + "\n";
}

std::string markdown_list(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "* " + markdown_text(line) + "\n";
  return lines.empty() ? out : out + "\n";
}

namespace {

void add_verdict(std::string& out, const Study& study) {
  out += "## Verdict\n\n";
  const std::vector<Mode> modes = modes_of(study);
  for (const Mode mode : modes) {
    std::vector<std::string> lines;
    for (const Sentence& sentence : study.verdict)
      if (sentence.mode == mode) lines.push_back(sentence.text);
    if (lines.empty()) continue;
    if (modes.size() > 1) out += mode == Mode::Infer ? "Inference:\n\n" : "Training:\n\n";
    out += markdown_list(lines);
  }
  if (study.verdict.empty()) out += "Nothing was measured, so nothing can be said.\n\n";
}

void add_points(std::string& out, const Study& study, Mode mode) {
  Rows rows = {{"device", "precision", "batch", "median ms", "95 % interval", "p99 ms", "samples/s", "memory",
                "J/sample", "cost per million"}};
  for (const Series& series : study.series)
    for (const Point& point : series.points) {
      if (series.mode != mode) continue;
      std::vector<std::string> row = {device_label(study.devices[series.device]), series.precision,
                                      std::to_string(point.batch)};
      if (!point.error.empty()) {
        row.push_back("failed: " + point.error);
        row.resize(rows[0].size());
      } else {
        const Timing& timing = point.timing;
        row.insert(row.end(), {number_text(timing.median_ms),
                               number_text(timing.interval.low) + " to " + number_text(timing.interval.high),
                               number_text(timing.p99_ms), number_text(point.samples_per_second),
                               bytes_text(point.memory_bytes), optional_text(point.energy.joules_per_sample),
                               optional_text(point.cost.per_million_samples)});
      }
      rows.push_back(std::move(row));
    }
  if (rows.size() == 1) return;
  out += mode == Mode::Infer ? "## Inference\n\n" : "## Training\n\n";
  out += markdown_table(rows, 2);
  std::vector<std::string> lines;
  for (const Series& series : study.series)
    if (series.mode == mode && series.knee)
      lines.push_back("Knee of " + series_label(study, series) + ": batch " +
                      std::to_string(series.knee->batch) + (series.knee->reached ? "" : " (not reached)") +
                      ", " + series.knee->why);
  for (const Crossover& crossover : study.crossovers)
    if (study.series[crossover.below].mode == mode) lines.push_back(crossover_text(study, crossover));
  out += markdown_list(lines);
}

void add_profiles(std::string& out, const Study& study) {
  constexpr size_t kMostNodes = 10;
  Rows parts = {{"run", "total ms", "kernels", "transfers", "launches", "waiting"}};
  std::string nodes;
  for (const Series& series : study.series)
    for (const Profile& profile : series.profiles) {
      const std::string name = series_label(study, series) +
                               (series.mode == Mode::Train ? ", training" : "") + ", batch " +
                               std::to_string(profile.batch);
      const auto share = [&profile](double ms) {
        return profile.total_ms > 0 ? percent_text(ms / profile.total_ms) : std::string("-");
      };
      parts.push_back({name, number_text(profile.total_ms), share(profile.kernels_ms),
                       share(profile.transfers_ms), share(profile.launches_ms), share(profile.waiting_ms)});
      std::vector<NodeTime> sorted = profile.nodes;
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const NodeTime& a, const NodeTime& b) { return a.milliseconds > b.milliseconds; });
      if (sorted.empty()) continue;
      Rows rows = {{"node", "op", "kernel", "ms", "share", "GFLOP/s", "of the roof"}};
      for (size_t i = 0; i < std::min(kMostNodes, sorted.size()); ++i) {
        const NodeTime& node = sorted[i];
        rows.push_back(
            {node.name, node.op, node.kernel, number_text(node.milliseconds), share(node.milliseconds),
             node.flops > 0 && node.milliseconds > 0 ? number_text(node.flops / node.milliseconds * 1e-6)
                                                     : "-",
             node.roof_share ? percent_text(*node.roof_share) : "-"});
      }
      nodes += "The nodes that take longest: " + markdown_text(name) + "\n\n" + markdown_table(rows, 3);
    }
  if (parts.size() > 1) out += "## Where the time goes\n\n" + markdown_table(parts, 1) + nodes;
}

void add_precision(std::string& out, const Study& study) {
  Rows rows = {{"series", "mode", "error", "allowed", "compared with"}};
  for (const Series& series : study.series)
    if (series.difference)
      rows.push_back({series_label(study, series), mode_text(series.mode),
                      format("%.2e", series.difference->relative), format("%.0e", series.difference->allowed),
                      series.difference->compared_with});
  if (rows.size() > 1) out += "## Precision against error\n\n" + markdown_table(rows, 2);
}

void add_targets(std::string& out, const Study& study) {
  Rows rows = {{"device", "target", "reached", "seconds", "epochs", "joules", "cost", "why not"}};
  for (const TimeToTarget& target : study.targets)
    rows.push_back({device_label(study.devices[target.device]) + " " + target.precision,
                    target.metric + " " + number_text(target.wanted), target.reached ? "yes" : "no",
                    optional_text(target.seconds), std::to_string(target.epochs),
                    optional_text(target.total_joules), optional_text(target.total_cost), target.reason});
  if (rows.size() > 1) out += "## Time to a target\n\n" + markdown_table(rows, 3);
}

/// A field of CSV.
std::string field(const std::string& text) {
  std::string out = text;
  if (!out.empty() && std::string_view("=+-@\t\r").find(out[0]) != std::string_view::npos) out = "'" + out;
  if (out.find_first_of(",\"\r\n") == std::string::npos) return out;
  std::string quoted = "\"";
  for (const char byte : out) quoted += byte == '"' ? std::string("\"\"") : std::string(1, byte);
  return quoted + "\"";
}

std::string field(double value) {
  return std::isfinite(value) ? format("%.9g", value) : "";
}
std::string field(const std::optional<double>& value) {
  return value ? field(*value) : "";
}

}  // namespace

std::string study_markdown(const Study& study) {
  std::string out = "# " + markdown_text(study.model.name) + ": rtbench study\n\n";
  out += markdown_text(study.started) + ", " + seconds_text(study.seconds) + ", hash of the model " +
         markdown_text(study.model.hash) + "\n\n";
  std::vector<std::string> warnings = study.machine.warnings;
  if (study.interrupted)
    warnings.emplace_back("The study was interrupted: it has what was measured until then.");
  if (study.out_of_time) warnings.emplace_back("The budget ended the study early.");
  if (!warnings.empty()) out += "Read with care:\n\n" + markdown_list(warnings);
  add_verdict(out, study);
  for (const Mode mode : modes_of(study)) add_points(out, study, mode);
  if (!study.energy_reason.empty())
    out += "No energy was measured: " + markdown_text(study.energy_reason) + ".\n\n";
  for (const LoadCrossover& crossover : study.load_crossovers)
    out += markdown_text(series_label(study, crossover.below)) + " costs less below " +
           number_text(crossover.samples_per_second) + " samples/s, " +
           markdown_text(series_label(study, crossover.above)) + " above, idle time counted.\n\n";
  add_profiles(out, study);
  add_precision(out, study);
  add_targets(out, study);
  if (!study.omissions.empty()) {
    out += "## Not measured\n\n";
    std::vector<std::string> lines;
    for (const Omission& omission : study.omissions) lines.push_back(omission.what + ": " + omission.why);
    out += markdown_list(lines);
  }
  out += "## Machine and method\n\n";
  Rows facts = {{"", ""}};
  for (const auto& [name, text] : machine_facts_text(study)) facts.push_back({name, text});
  out += markdown_table(facts, 2);
  for (const std::string& paragraph : method_text(study)) out += markdown_text(paragraph) + "\n\n";
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string study_csv(const Study& study) {
  std::string out =
      "model,hash,device,name,program,predicted,precision,mode,batch,median_ms,low_ms,high_ms,p90_ms,p99_ms,"
      "least_ms,runs,rounds,outliers,precise,samples_per_second,first_run_ms,memory_bytes,fallbacks,flops,"
      "bytes,roof_share,joules_per_sample,watts,cost_per_million_samples,relative_error,error\r\n";
  for (const Series& series : study.series) {
    const StudyDevice& device = study.devices[series.device];
    for (const Point& point : series.points) {
      out += field(study.model.name) + "," + field(study.model.hash) + "," + field(device.id) + "," +
             field(device.name) + "," + field(device.program) + "," + (device.predicted ? "1" : "0") + "," +
             field(series.precision) + "," + (series.mode == Mode::Infer ? "infer" : "train") + "," +
             std::to_string(point.batch) + ",";
      if (!point.error.empty()) {
        constexpr size_t kFiguresBetween = 21;  // from median_ms to relative_error
        out += std::string(kFiguresBetween, ',') + field(point.error) + "\r\n";
        continue;
      }
      const Timing& timing = point.timing;
      out += field(timing.median_ms) + "," + field(timing.interval.low) + "," + field(timing.interval.high) +
             "," + field(timing.p90_ms) + "," + field(timing.p99_ms) + "," + field(timing.least_ms) + "," +
             std::to_string(timing.runs) + "," + std::to_string(timing.rounds) + "," +
             std::to_string(timing.outliers) + "," + (timing.precise ? "1" : "0") + "," +
             field(point.samples_per_second) + "," + field(point.first_run_ms) + "," +
             std::to_string(point.memory_bytes) + "," + std::to_string(point.fallbacks) + "," +
             field(point.flops) + "," + field(point.bytes) + "," + field(point.roof_share) + "," +
             field(point.energy.joules_per_sample) + "," + field(point.energy.watts) + "," +
             field(point.cost.per_million_samples) + "," +
             (series.difference ? field(series.difference->relative) : std::string()) + ",\r\n";
    }
  }
  return out;
}

}  // namespace librt::bench
