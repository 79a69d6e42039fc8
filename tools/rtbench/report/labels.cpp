#include "tools/rtbench/report/labels.h"

#include <algorithm>
#include <cmath>

#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

void add_load(Lines& lines, const std::string& name, const MachineLoad& load) {
  if (load.seconds <= 0) {
    lines.emplace_back(name, "not observed");
    return;
  }
  std::string text = "over " + seconds_text(load.seconds);
  if (load.other_cpus) text += format(", other programs used %.2f CPUs", *load.other_cpus);
  if (load.steal) text += ", the hypervisor took " + percent_text(*load.steal);
  if (load.pressure) text += ", tasks waited for a CPU " + percent_text(*load.pressure) + " of the time";
  if (load.quota_throttled && *load.quota_throttled > 0)
    text += ", the quota stopped this process " + percent_text(*load.quota_throttled) + " of the time";
  if (load.heat_throttled && *load.heat_throttled > 0)
    text += format(", cores were slowed by heat %llu times",
                   static_cast<unsigned long long>(*load.heat_throttled));
  if (load.frequency_mhz) text += format(", %.0f MHz at its end", *load.frequency_mhz);
  lines.emplace_back(name, text);
}

}  // namespace

std::string device_label(const StudyDevice& device) {
  const bool is_peer = !device.predicted && !device.program.empty() && !device.program.starts_with("librt");
  // The id of a peer may name the peer already.
  const bool named = !is_peer || device.id.find(device.program) != std::string::npos;
  const std::string label = named ? device.id : device.program + " on " + device.id;
  return device.predicted ? label + " (predicted)" : label;
}

std::string series_label(const Study& study, const Series& series) {
  return device_label(study.devices[series.device]) + " " + series.precision;
}

std::string series_label(const Study& study, size_t index) {
  return series_label(study, study.series[index]);
}

std::string crossover_text(const Study& study, const Crossover& crossover) {
  const std::string below = series_label(study, crossover.below),
                    above = series_label(study, crossover.above);
  switch (crossover.kind) {
    case Crossover::Kind::Crosses:
      return below + " is faster up to batch " + std::to_string(crossover.last_below) + ", " + above +
             " from batch " + std::to_string(crossover.first_above) + " on; the medians cross near " +
             number_text(crossover.estimate) +
             (crossover.resolved ? "" : " (batches between were not measured)");
    case Crossover::Kind::AlwaysFaster:
      return below + " is faster than " + above + " at every batch measured, by a factor of at least " +
             format("%.2f", crossover.least_margin);
    case Crossover::Kind::TooClose: return below + " and " + above + " are too close to call at every batch";
  }
  return {};
}

std::string interval_text(double value, const Interval& interval, const char* unit) {
  return number_text(value) + unit + " (" + number_text(interval.low) + " to " + number_text(interval.high) +
         ")";
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 120) return number_text(seconds) + " s";
  const double whole = std::round(seconds);
  return format("%.0f min %.0f s", std::floor(whole / 60), std::fmod(whole, 60));
}

std::string optional_text(const std::optional<double>& value) {
  return value ? number_text(*value) : "-";
}

std::string percent_text(double share) {
  return std::isfinite(share) ? format("%.1f %%", 100 * share) : "-";
}

std::vector<Mode> modes_of(const Study& study) {
  std::vector<Mode> modes;
  for (const Mode mode : {Mode::Infer, Mode::Train})
    if (std::any_of(study.series.begin(), study.series.end(),
                    [mode](const Series& series) { return series.mode == mode; }))
      modes.push_back(mode);
  return modes;
}

const Point* fastest_point(const Series& series) {
  const Point* best = nullptr;
  for (const Point& point : series.points)
    if (point.error.empty() && (best == nullptr || point.samples_per_second > best->samples_per_second))
      best = &point;
  return best;
}

const Point* smallest_point(const Series& series) {
  for (const Point& point : series.points)
    if (point.error.empty()) return &point;
  return nullptr;
}

Lines machine_facts_text(const Study& study) {
  const MachineFacts& facts = study.machine.facts;
  Lines lines;
  const auto add = [&lines](const char* name, const std::string& text) {
    if (!text.empty()) lines.emplace_back(name, text);
  };
  add("CPU", facts.cpu);
  std::string cpus = std::to_string(facts.allowed_cpus) + " of " + std::to_string(facts.online_cpus) +
                     " logical CPUs allowed";
  if (facts.quota_cpus) cpus += format(", quota %.2f CPUs", *facts.quota_cpus);
  if (facts.smt) cpus += *facts.smt ? ", several threads share a core (SMT)" : ", one thread for each core";
  if (facts.online_cpus > 0) add("CPUs", cpus);
  std::string frequency = facts.governor.empty() ? "" : "governor " + facts.governor;
  const auto append = [&frequency](const std::string& text) {
    frequency += (frequency.empty() ? "" : ", ") + text;
  };
  if (facts.frequency_mhz) append(format("%.0f MHz at the beginning", *facts.frequency_mhz));
  if (facts.highest_mhz) append(format("at most %.0f MHz", *facts.highest_mhz));
  if (facts.boost) append(*facts.boost ? "boost allowed" : "no boost");
  add("Frequency", frequency.empty() ? "not reported by this machine" : frequency);
  if (facts.memory_bytes > 0) add("Memory", bytes_text(facts.memory_bytes));
  add("System", facts.system + (facts.system.empty() || facts.kernel.empty() ? "" : ", ") + facts.kernel +
                    (facts.virtual_machine ? ", a virtual machine" : ""));
  add_load(lines, "Before", study.machine.before);
  add_load(lines, "While it measured", study.machine.during);
  for (const auto& [name, version] : study.machine.versions) lines.emplace_back(name, version);
  return lines;
}

std::vector<std::string> method_text(const Study& study) {
  std::vector<std::string> out = {
      "Each figure is the median of many runs; in parentheses its 95 % confidence interval, by bootstrap "
      "over "
      "rounds and the runs within them. Rounds of all devices and precisions take turns, so that a change of "
      "the machine meets all of them. Outliers (Tukey's rule) are counted, not removed.",
      "The batch was doubled until throughput grew by less than 5 % (the knee) or memory ended. A crossover "
      "is "
      "the batch from which one device is faster with certainty: where intervals overlap it is too close to "
      "call.",
      "Errors are the largest difference of an output, divided by the largest output, against fp32 on the "
      "same "
      "inputs. Inputs are seeded random numbers unless data was given. Operations and bytes are those of the "
      "operators' definitions; the roof of a device is what kernels of one kind each reached on it."};
  if (std::any_of(study.devices.begin(), study.devices.end(),
                  [](const StudyDevice& device) { return device.predicted; }))
    out.emplace_back(
        "Devices marked \"predicted\" were not used: their figures are computed from the cost of each node "
        "and "
        "the device's data sheet, and their intervals are the range of the prediction.");
  return out;
}

}  // namespace librt::bench
