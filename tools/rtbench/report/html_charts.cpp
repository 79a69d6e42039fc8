// The parts of the HTML report with charts: each with its numbers as a table.
#include <algorithm>
#include <cmath>
#include <set>

#include "tools/rtbench/report/html_sections.h"
#include "tools/rtbench/report/labels.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

/// One chart. kind: for page/charts.js; mode: which series.
Html figure(const std::string& kind, const std::string& title, const std::string& caption, Mode mode) {
  Html out;
  out << "<figure class=\"" << kind << "\"><h3>" << title << "</h3><div class=\"chart\"><canvas data-chart=\""
      << kind << "\" data-mode=\"" << (mode == Mode::Infer ? Html() << "infer" : Html() << "train")
      << "\" role=\"img\" aria-label=\"" << title << "; the numbers follow as a table\"></canvas></div>";
  if (!caption.empty()) out << "<figcaption>" << caption << "</figcaption>";
  out << "</figure>\n";
  return out;
}

Html numbers(const std::string& summary, const Html& table) {
  Html out;
  out << "<details class=\"numbers\"><summary>" << summary << "</summary>\n" << table << "</details>\n";
  return out;
}

HtmlCell cell(double value) {
  return {number_text(value), value};
}
HtmlCell cell(const std::optional<double>& value) {
  return value ? cell(*value) : HtmlCell{"-"};
}
HtmlCell cell(int64_t value) {
  return {std::to_string(value), static_cast<double>(value)};
}
HtmlCell bytes_cell(uint64_t bytes) {
  return {bytes_text(bytes), static_cast<double>(bytes)};
}
HtmlCell percent_cell(double share) {
  return {percent_text(share), share};
}

Html sweep_table(const Study& study, Mode mode) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const Series& series : study.series) {
    if (series.mode != mode) continue;
    for (const Point& point : series.points) {
      if (!point.error.empty()) {
        rows.push_back({{series_label(study, series)}, cell(point.batch), {"-"}, {"failed: " + point.error}});
        continue;
      }
      const Timing& timing = point.timing;
      rows.push_back({{series_label(study, series)},
                      cell(point.batch),
                      cell(timing.median_ms),
                      {number_text(timing.interval.low) + " to " + number_text(timing.interval.high)},
                      cell(timing.p90_ms),
                      cell(timing.p99_ms),
                      cell(point.samples_per_second),
                      cell(point.first_run_ms),
                      bytes_cell(point.memory_bytes),
                      cell(static_cast<int64_t>(timing.runs)),
                      cell(static_cast<int64_t>(timing.outliers))});
    }
  }
  return html_table({"series", "batch", "median ms", "95 % interval", "p90 ms", "p99 ms", "samples/s",
                     "first run ms", "memory", "runs", "outliers"},
                    rows);
}

/// What the marks in the charts mean.
Html marks(const Study& study, Mode mode) {
  Html out;
  Html knees, crossings, others;
  for (const Series& series : study.series)
    if (series.mode == mode && series.knee)
      knees << "<li>" << series_label(study, series) << ": batch " << std::to_string(series.knee->batch)
            << (series.knee->reached ? Html() : Html() << " (not reached)") << ", " << series.knee->why
            << "</li>\n";
  int number = 0;
  for (const Crossover& crossover : study.crossovers) {
    if (study.series[crossover.below].mode != mode) continue;
    if (crossover.kind == Crossover::Kind::Crosses)
      crossings << "<li value=\"" << std::to_string(++number) << "\">" << crossover_text(study, crossover)
                << "</li>\n";
    else
      others << "<li>" << crossover_text(study, crossover) << "</li>\n";
  }
  if (knees.empty() && crossings.empty() && others.empty()) return out;
  out << "<div class=\"marks\">\n";
  if (!knees.empty()) out << "<div><h4>Knees (rings in the charts)</h4><ul>\n" << knees << "</ul></div>\n";
  if (!crossings.empty())
    out << "<div><h4>Crossovers (numbers in the chart)</h4><ol>\n" << crossings << "</ol></div>\n";
  if (!others.empty()) out << "<div><h4>No crossover</h4><ul>\n" << others << "</ul></div>\n";
  out << "</div>\n";
  return out;
}

bool has_points(const Study& study, Mode mode) {
  return std::any_of(study.series.begin(), study.series.end(), [mode](const Series& series) {
    return series.mode == mode && fastest_point(series) != nullptr;
  });
}

/// Distinct texts, in order.
std::vector<std::string> distinct(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts)
    if (!text.empty() && std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
  return out;
}

Html absent(const std::string& what, const std::vector<std::string>& reasons) {
  Html out;
  out << "<p class=\"absent\">" << what;
  for (size_t i = 0; i < reasons.size(); ++i) out << (i == 0 ? Html() << ": " : Html() << "; ") << reasons[i];
  out << ".</p>\n";
  return out;
}

}  // namespace

Html sweep_sections(const Study& study) {
  Html out;
  for (const Mode mode : modes_of(study)) {
    if (!has_points(study, mode)) continue;
    const std::string name = mode == Mode::Infer ? "Inference" : "Training";
    out << "<section id=\"" << std::string(mode_text(mode)) << "\">\n<h2>" << name
        << " by batch size</h2>\n<div class=\"pair\">\n"
        << figure("throughput", "Throughput", "More is better. Bars: 95 % intervals.", mode)
        << figure("latency", mode == Mode::Infer ? "Time of a run" : "Time of a step",
                  "Less is better. Bars: 95 % intervals.", mode)
        << "</div>\n"
        << marks(study, mode)
        << figure("pareto", "Latency against throughput",
                  "Up and to the left is better. The line joins the Pareto front: no other point has both a "
                  "shorter time and a higher throughput. Numbers at points are batch sizes.",
                  mode)
        << numbers("The numbers of these charts", sweep_table(study, mode)) << "</section>\n";
  }
  return out;
}

Html energy_section(const Study& study) {
  if (study.series.empty()) return {};
  Html out;
  out << "<section id=\"energy\">\n<h2>Energy</h2>\n";
  std::vector<std::vector<HtmlCell>> rows;
  std::vector<std::string> reasons, sources;
  std::set<Mode> modes;
  for (const Series& series : study.series)
    for (const Point& point : series.points) {
      if (!point.error.empty()) continue;
      if (!point.energy.joules_per_sample) {
        reasons.push_back(point.energy.reason);
        continue;
      }
      modes.insert(series.mode);
      sources.push_back(device_label(study.devices[series.device]) + ": " + point.energy.source);
      rows.push_back({{series_label(study, series)},
                      {mode_text(series.mode)},
                      cell(point.batch),
                      cell(point.energy.joules_per_sample),
                      cell(point.energy.watts)});
    }
  if (rows.empty() && !study.energy_reason.empty()) reasons = {study.energy_reason};
  reasons = distinct(reasons);
  if (rows.empty()) {
    out << absent("No energy was measured", reasons) << "</section>\n";
    return out;
  }
  std::string from;
  for (const std::string& source : distinct(sources)) from += (from.empty() ? "" : "; ") + source;
  out << "<div class=\"pair\">\n";
  for (const Mode mode : modes)
    out << figure("energy",
                  mode == Mode::Infer ? "Energy for an inference, per sample"
                                      : "Energy for a training step, per sample",
                  "Less is better. Idle power included. " + from + ".", mode);
  out << "</div>\n";
  if (!reasons.empty()) out << absent("Not measured elsewhere", reasons);
  for (const StudyDevice& device : study.devices)
    if (device.idle_watts)
      out << "<p>" << device_label(device) << " takes " << number_text(*device.idle_watts)
          << " W while idle.</p>\n";
  out << numbers("The numbers of this chart",
                 html_table({"series", "mode", "batch", "joules per sample", "watts"}, rows))
      << "</section>\n";
  return out;
}

Html cost_section(const Study& study) {
  if (study.series.empty()) return {};
  Html out;
  out << "<section id=\"cost\">\n<h2>Cost</h2>\n";
  std::vector<std::vector<HtmlCell>> rows;
  std::vector<std::string> reasons;
  std::set<Mode> modes;
  for (const Series& series : study.series)
    for (const Point& point : series.points) {
      if (!point.error.empty()) continue;
      if (!point.cost.per_million_samples) {
        reasons.push_back(point.cost.reason);
        continue;
      }
      modes.insert(series.mode);
      rows.push_back({{series_label(study, series)},
                      {mode_text(series.mode)},
                      cell(point.batch),
                      cell(point.cost.per_million_samples),
                      cell(point.cost.per_epoch)});
    }
  reasons = distinct(reasons);
  if (rows.empty()) {
    if (reasons.empty()) reasons.emplace_back("neither --price nor --electricity was given");
    out << absent("No cost was computed", reasons) << "</section>\n";
    return out;
  }
  std::string prices;
  for (const StudyDevice& device : study.devices)
    if (device.price_per_hour)
      prices += device_label(device) + " " + number_text(*device.price_per_hour) + " an hour; ";
  if (study.electricity_per_kwh)
    prices += "electricity " + number_text(*study.electricity_per_kwh) + " per kWh; ";
  out << "<div class=\"pair\">\n";
  for (const Mode mode : modes)
    out << figure(
        "cost",
        mode == Mode::Infer ? "Cost of a million inferences" : "Cost of training on a million samples",
        "Less is better. A device that is busy all the time. " + prices +
            "as given with --price and "
            "--electricity.",
        mode);
  out << "</div>\n";
  if (!study.load_crossovers.empty()) {
    out << "<h3>By load, idle time counted</h3>\n<ul>\n";
    for (const LoadCrossover& crossover : study.load_crossovers)
      out << "<li>" << series_label(study, crossover.below) << " costs less below "
          << number_text(crossover.samples_per_second) << " samples/s, "
          << series_label(study, crossover.above) << " above.</li>\n";
    out << "</ul>\n";
  }
  if (!reasons.empty()) out << absent("Not computed elsewhere", reasons);
  out << numbers("The numbers of this chart",
                 html_table({"series", "mode", "batch", "per million samples", "per epoch"}, rows))
      << "</section>\n";
  return out;
}

namespace {

bool has_profiles(const Study& study) {
  return std::any_of(study.series.begin(), study.series.end(),
                     [](const Series& series) { return !series.profiles.empty(); });
}

std::string profile_label(const Study& study, const Series& series, const Profile& profile) {
  return series_label(study, series) + (series.mode == Mode::Train ? ", training" : "") + ", batch " +
         std::to_string(profile.batch);
}

/// A choice among the profiles; the script shows the elements with data-profile="SERIES-PROFILE" of the
/// chosen one.
Html profile_choice(const Study& study) {
  Html out;
  out << "<label class=\"choice\">Run: <select class=\"profile\">\n";
  for (size_t s = 0; s < study.series.size(); ++s)
    for (size_t p = 0; p < study.series[s].profiles.size(); ++p)
      out << "<option value=\"" << std::to_string(s) + "-" + std::to_string(p) << "\">"
          << profile_label(study, study.series[s], study.series[s].profiles[p]) << "</option>\n";
  out << "</select></label>\n";
  return out;
}

Html parts_table(const Study& study) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const Series& series : study.series)
    for (const Profile& profile : series.profiles)
      rows.push_back({{profile_label(study, series, profile)},
                      cell(profile.total_ms),
                      cell(profile.kernels_ms),
                      cell(profile.transfers_ms),
                      cell(profile.launches_ms),
                      cell(profile.waiting_ms),
                      percent_cell(profile.total_ms > 0 ? profile.kernels_ms / profile.total_ms : 0),
                      percent_cell(profile.overhead)});
  return html_table({"run", "total ms", "kernels", "transfers", "launches", "waiting", "kernels' share",
                     "cost of timing nodes"},
                    rows);
}

Html node_table(const Profile& profile) {
  double total = 0;
  for (const NodeTime& node : profile.nodes) total += node.milliseconds;
  std::vector<std::vector<HtmlCell>> rows;
  int64_t order = 0;
  for (const NodeTime& node : profile.nodes) {
    const double seconds = node.milliseconds * 1e-3;
    rows.push_back({cell(++order),
                    {node.name},
                    {node.op},
                    {node.kernel},
                    {node.device},
                    {format("%.4f", node.milliseconds), node.milliseconds},
                    percent_cell(total > 0 ? node.milliseconds / total : 0),
                    node.flops > 0 && seconds > 0 ? cell(node.flops / seconds * 1e-9) : HtmlCell{"-"},
                    node.bytes > 0 && seconds > 0 ? cell(node.bytes / seconds * 1e-9) : HtmlCell{"-"},
                    node.roof_share ? percent_cell(*node.roof_share) : HtmlCell{"-"},
                    {node.bound.empty() ? "-" : node.bound},
                    bytes_cell(node.live_bytes + node.scratch_bytes)});
  }
  return html_table({"#", "node", "op", "kernel", "device", "ms", "share", "GFLOP/s", "GB/s", "of the roof",
                     "bound by", "memory"},
                    rows);
}

}  // namespace

Html time_section(const Study& study) {
  if (!has_profiles(study)) return {};
  Html out;
  out << "<section id=\"time\">\n<h2>Where the time goes</h2>\n"
      << figure(
             "parts", "Parts of a run",
             "Shares of the median time of a run. Launches: submitting, synchronizing and the session's own "
             "work, that is what no node accounts for. Waiting: for data.",
             Mode::Infer)
      << numbers("The numbers of this chart", parts_table(study))
      << figure("nodes", "Time by node",
                "The nodes that take longest in any of the runs; all others together are \"other nodes\".",
                Mode::Infer)
      << "<h3>Nodes of a run</h3>\n"
      << profile_choice(study);
  bool first = true;
  for (size_t s = 0; s < study.series.size(); ++s)
    for (size_t p = 0; p < study.series[s].profiles.size(); ++p) {
      const Profile& profile = study.series[s].profiles[p];
      out << "<div class=\"of-profile\" data-profile=\"" << std::to_string(s) + "-" + std::to_string(p)
          << (first ? Html() << "\">\n" : Html() << "\" hidden>\n") << "<h4 class=\"print-only\">"
          << profile_label(study, study.series[s], profile) << "</h4>\n"
          << node_table(profile) << "</div>\n";
      first = false;
    }
  out << "</section>\n";
  return out;
}

Html roofline_section(const Study& study) {
  std::vector<std::vector<HtmlCell>> rows;
  bool has_nodes = false;
  for (const StudyDevice& device : study.devices)
    if (device.roof.measured || device.predicted)
      rows.push_back(
          {{device_label(device)},
           cell(device.roof.flops_per_second * 1e-9),
           cell(device.roof.bytes_per_second * 1e-9),
           cell(device.roof.bytes_per_second > 0 ? device.roof.flops_per_second / device.roof.bytes_per_second
                                                 : NAN),
           cell(device.roof.launch_seconds * 1e6)});
  for (const Series& series : study.series)
    for (const Profile& profile : series.profiles)
      for (const NodeTime& node : profile.nodes) has_nodes |= node.flops > 0 && node.bytes > 0;
  if (rows.empty() || !has_nodes) return {};
  std::vector<std::vector<HtmlCell>> runs;
  for (const Series& series : study.series)
    for (const Point& point : series.points)
      if (point.error.empty() && point.flops && point.bytes && *point.bytes > 0)
        runs.push_back({{series_label(study, series)},
                        {mode_text(series.mode)},
                        cell(point.batch),
                        cell(*point.flops / *point.bytes),
                        cell(*point.flops / point.timing.median_ms * 1e-6),
                        cell(*point.bytes / point.timing.median_ms * 1e-6),
                        point.roof_share ? percent_cell(*point.roof_share) : HtmlCell{"-"}});
  Html out;
  out << "<section id=\"roofline\">\n<h2>Roofline</h2>\n"
      << figure(
             "roofline", "Operations per second against intensity",
             "Lines: what the device can do at most, in fp32, limited by memory (rising) or by arithmetic "
             "(level). Small points: nodes of the largest profiled batch in fp32; large points: whole runs. "
             "Points above a line profit from caches, or from algorithms with fewer operations.",
             Mode::Infer)
      << numbers("The roofs",
                 html_table({"device", "GFLOP/s", "GB/s", "ridge, FLOP per byte", "launch, us"}, rows));
  if (!runs.empty())
    out << numbers(
        "Whole runs",
        html_table({"series", "mode", "batch", "FLOP per byte", "GFLOP/s", "GB/s", "of the roof"}, runs));
  out << "</section>\n";
  return out;
}

Html memory_section(const Study& study) {
  Html out;
  if (!has_points(study, Mode::Infer) && !has_points(study, Mode::Train)) return out;
  out << "<section id=\"memory\">\n<h2>Memory</h2>\n<div class=\"pair\">\n";
  for (const Mode mode : modes_of(study))
    if (has_points(study, mode))
      out << figure("memory",
                    mode == Mode::Infer ? "Memory of a session, inference" : "Memory of a session, training",
                    "States, weights, packed weights and the arena.", mode);
  bool planned = false;
  std::vector<std::vector<HtmlCell>> rows;
  for (const Series& series : study.series)
    for (const Profile& profile : series.profiles) {
      const MemoryUse& memory = profile.memory;
      for (const NodeTime& node : profile.nodes) planned |= node.live_bytes + node.scratch_bytes > 0;
      rows.push_back({{profile_label(study, series, profile)},
                      bytes_cell(memory.weights),
                      bytes_cell(memory.packed),
                      bytes_cell(memory.states),
                      bytes_cell(memory.arena),
                      bytes_cell(memory.unshared)});
    }
  out << "</div>\n";
  if (planned)
    out << figure(
        "plan", "The memory plan over a run",
        "Values that live between nodes, and scratch of the node itself; the dashed line is the arena "
        "that is allocated. The run is chosen above the table of nodes.",
        Mode::Infer);
  if (!rows.empty())
    out << numbers(
        "Memory of the profiled runs, by what is in it",
        html_table({"run", "weights", "packed weights", "states", "arena", "without sharing"}, rows));
  out << "</section>\n";
  return out;
}

Html precision_section(const Study& study) {
  std::vector<std::vector<HtmlCell>> rows;
  for (const Series& series : study.series) {
    if (!series.difference) continue;
    const Point* fast = fastest_point(series);
    rows.push_back({{series_label(study, series)},
                    {mode_text(series.mode)},
                    {format("%.2e", series.difference->relative), series.difference->relative},
                    {format("%.0e", series.difference->allowed), series.difference->allowed},
                    {series.difference->compared_with},
                    fast != nullptr ? cell(fast->samples_per_second) : HtmlCell{"-"}});
  }
  if (rows.empty()) return {};
  Html out;
  out << "<section id=\"precision\">\n<h2>Precision against error</h2>\n"
      << figure("precision", "Throughput against error",
                "Up and to the left is better. Error: largest difference from fp32, relative to the largest "
                "output. With random weights quantization looks worse than with trained ones.",
                Mode::Infer)
      << numbers("The numbers of this chart",
                 html_table({"series", "mode", "error", "allowed", "compared with", "samples/s"}, rows))
      << "</section>\n";
  return out;
}

Html target_section(const Study& study) {
  if (study.targets.empty()) return {};
  std::vector<std::vector<HtmlCell>> rows;
  bool any = false;
  for (const TimeToTarget& target : study.targets) {
    any |= target.reached && target.seconds.has_value();
    rows.push_back({{device_label(study.devices[target.device]) + " " + target.precision},
                    {target.metric + " " + number_text(target.wanted)},
                    {target.reached ? "yes" : "no"},
                    cell(target.best),
                    cell(target.seconds),
                    cell(target.waiting_seconds),
                    cell(target.samples_per_second),
                    cell(target.epochs),
                    cell(target.steps),
                    cell(target.total_joules),
                    cell(target.total_cost),
                    {target.reason}});
  }
  Html out;
  out << "<section id=\"target\">\n<h2>Time to a target</h2>\n";
  if (any)
    out << figure("target", "Seconds of training until the target is reached",
                  "Less is better. Same seed on all devices; validation included.", Mode::Train);
  out << html_table({"device", "target", "reached", "best", "seconds", "waiting for data, s", "samples/s",
                     "epochs", "steps", "joules", "cost", "why not"},
                    rows)
      << "</section>\n";
  return out;
}

}  // namespace librt::bench
