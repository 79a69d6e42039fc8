#include "tools/rtbench/study/text.h"

#include <algorithm>

#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/study/budget.h"
#include "tools/rtbench/study/verdict.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using namespace words;  // NOLINT: functions that make text

using Rows = std::vector<std::vector<std::string>>;

std::string count(int64_t value) {
  return std::to_string(value);
}

// Without columns that hold nothing but "-" under their heading.
Rows without_empty(Rows rows) {
  for (size_t column = rows[0].size(); column-- > 0;) {
    const bool empty = std::all_of(rows.begin() + 1, rows.end(), [&](const std::vector<std::string>& row) {
      return column >= row.size() || row[column] == "-";
    });
    if (!empty) continue;
    for (std::vector<std::string>& row : rows)
      if (column < row.size()) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  return rows;
}

// Whether no other point has both a shorter time and a higher throughput.
bool is_on_front(const Study& study, const Point& point) {
  const auto has = [&](const std::vector<PointRef>& front) {
    return std::any_of(front.begin(), front.end(), [&](const PointRef& ref) {
      return &study.series[ref.series].points[ref.point] == &point;
    });
  };
  return has(study.pareto_infer) || has(study.pareto_train);
}

std::string points_table(const Study& study) {
  Rows rows = {{"device", "precision", "mode", "batch", "median", "95 % interval", "p90", "p99", "runs",
                "outliers", "samples/s", "memory", "roof %", "J/sample", "cost/million", "error", "pareto"}};
  for (const Series& series : study.series)
    for (const Point& point : series.points) {
      std::vector<std::string> row = {study.devices[series.device].id, series.precision,
                                      series.mode == Mode::Train ? "train" : "infer", count(point.batch)};
      if (!point.error.empty()) {
        row.push_back(point.error);
        rows.push_back({row[0], row[1], row[2], row[3], "-", point.error.substr(0, 60)});
        continue;
      }
      const Timing& timing = point.timing;
      const bool is_first = &point == &series.points.front();
      row.insert(
          row.end(),
          {time_text(timing.median_ms),
           format("%.1f to +%.1f %%%s", 100 * (timing.interval.low / timing.median_ms - 1),
                  100 * (timing.interval.high / timing.median_ms - 1), timing.precise ? "" : " !"),
           time_text(timing.p90_ms), time_text(timing.p99_ms), std::to_string(timing.runs),
           std::to_string(timing.outliers), number_text(point.samples_per_second),
           bytes_text(point.memory_bytes), point.roof_share ? format("%.0f", 100 * *point.roof_share) : "-",
           point.energy.joules_per_sample ? number_text(*point.energy.joules_per_sample) : "-",
           point.cost.per_million_samples ? number_text(*point.cost.per_million_samples) : "-",
           is_first && series.difference ? format("%.1e", series.difference->relative) : "-",
           is_on_front(study, point) ? "*" : "-"});
      rows.push_back(std::move(row));
    }
  return columns(without_empty(std::move(rows)), 3);
}

std::string profiles_table(const Study& study) {
  Rows rows = {{"device", "precision", "mode", "batch", "kernels", "transfers", "launches", "slowest node"}};
  for (const Series& series : study.series)
    for (const Profile& profile : series.profiles) {
      const auto slowest =
          std::max_element(profile.nodes.begin(), profile.nodes.end(),
                           [](const auto& a, const auto& b) { return a.milliseconds < b.milliseconds; });
      const auto share = [&](double ms) {
        return format("%.0f %%", profile.total_ms > 0 ? 100 * ms / profile.total_ms : 0.0);
      };
      rows.push_back({study.devices[series.device].id, series.precision,
                      series.mode == Mode::Train ? "train" : "infer", count(profile.batch),
                      share(profile.kernels_ms), share(profile.transfers_ms), share(profile.launches_ms),
                      slowest == profile.nodes.end()
                          ? "-"
                          : slowest->name + " (" + slowest->op + ") " + share(slowest->milliseconds)});
    }
  return rows.size() > 1 ? columns(rows, 3) : std::string();
}

std::string devices_text(const Study& study) {
  std::string text;
  for (const StudyDevice& device : study.devices) {
    text += device.id + ": " + device.name + ", " + (device.driver.empty() ? device.program : device.driver);
    if (device.roof.measured)
      text += format("; peak %s GFLOP/s fp32, %s GB/s, %s for a run of one node",
                     number_text(device.roof.flops_per_second * 1e-9).c_str(),
                     number_text(device.roof.bytes_per_second * 1e-9).c_str(),
                     time_text(device.roof.launch_seconds * 1e3).c_str());
    text += "\n";
  }
  return text;
}

}  // namespace

std::string study_text(const Study& study) {
  std::string text;
  for (const std::string& warning : study.machine.warnings) text += warning + "\n";
  text += format("study of %s (%s, %s), %s%s\n", study.model.name.c_str(),
                 bytes_text(study.model.file_bytes).c_str(), study.model.hash.c_str(),
                 duration_text(study.seconds).c_str(),
                 study.interrupted   ? ", interrupted"
                 : study.out_of_time ? ", cut short by the budget"
                                     : "");
  text += "machine: " + machine_text(study.machine.facts) + "\n" + devices_text(study) + "\n";
  for (const Sentence& sentence : study.verdict) text += sentence.text + "\n";
  text += "\n" + points_table(study);
  if (const std::string profiles = profiles_table(study); !profiles.empty()) text += "\n" + profiles;
  if (!study.energy_reason.empty()) text += "\nenergy is not available: " + study.energy_reason + "\n";
  if (!study.omissions.empty()) {
    text += "\nnot measured:\n";
    for (const Omission& omission : study.omissions)
      text += "  " + omission.what + ": " + omission.why + "\n";
  }
  return text;
}

}  // namespace librt::bench
