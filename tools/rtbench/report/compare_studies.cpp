#include "tools/rtbench/report/compare_studies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tools/rtbench/report/labels.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

constexpr size_t kFewRuns = 5;
constexpr double kHalfWidthOfFewRuns = 0.05;
constexpr double kNormal95 = 1.959964;  // 97.5th percentile of the standard normal distribution

/// The quantile of the standard normal distribution: bisection of its distribution function.
double normal_quantile(double probability) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// A median's logarithm and its standard error, from its interval at 95 %.
struct LogMedian {
  double log = 0, error = 0;
};

LogMedian log_median(const Timing& timing) {
  // The wider side: intervals of medians need not be symmetric. A few runs do not show how much they vary.
  double half = timing.runs < kFewRuns ? kHalfWidthOfFewRuns : 0;
  if (timing.interval.low > 0 && timing.interval.high > 0)
    half = std::max({half, std::log(timing.interval.high / timing.median_ms),
                     std::log(timing.median_ms / timing.interval.low)});
  return {std::log(timing.median_ms), half / kNormal95};
}

/// A difference of logarithms with its standard error.
struct LogRatio {
  double log = 0, error = 0;
};

LogRatio log_ratio(const Point& before, const Point& after) {
  const LogMedian old_median = log_median(before.timing), new_median = log_median(after.timing);
  return {new_median.log - old_median.log, std::hypot(old_median.error, new_median.error)};
}

/// deviations: how many standard errors an interval has to either side, for the judgement.
TimeChange judged(LogRatio ratio, double tolerance, double deviations) {
  // Of two processes. It is the same for all points of a series, so that their number does not reduce it.
  ratio.error = std::hypot(ratio.error, std::sqrt(2.0) * kProcessHalfWidth / kNormal95);
  TimeChange result{.ratio = std::exp(ratio.log),
                    .interval = {std::exp(ratio.log - kNormal95 * ratio.error),
                                 std::exp(ratio.log + kNormal95 * ratio.error)}};
  const double low = ratio.log - deviations * ratio.error, high = ratio.log + deviations * ratio.error;
  if (low > std::log1p(tolerance))
    result.change = Change::Slower;
  else if (high < -std::log1p(tolerance))
    result.change = Change::Faster;
  return result;
}

/// What a series is found by in the other study: not the version of a peer, which may be what changed.
using Key = std::tuple<std::string, int, std::string, std::string, bool, std::string, Mode>;
Key key_of(const Study& study, const Series& series) {
  const StudyDevice& device = study.devices[series.device];
  return {device.backend,   device.index,     device.name, device.program.substr(0, device.program.find(' ')),
          device.predicted, series.precision, series.mode};
}

std::string name_of(const Study& study, const Series& series) {
  return series_label(study, series) + " (" + study.devices[series.device].name + "), " +
         mode_text(series.mode);
}

const Point* point_at(const Series& series, int64_t batch) {
  for (const Point& point : series.points)
    if (point.batch == batch) return &point;
  return nullptr;
}

void compare_machines(const Study& before, const Study& after, std::vector<std::string>& cautions) {
  const auto differ = [&cautions](const std::string& what, const std::string& a, const std::string& b) {
    if (a != b)
      cautions.push_back(what + " changed from " + (a.empty() ? "nothing" : a) + " to " +
                         (b.empty() ? "nothing" : b));
  };
  const MachineFacts &a = before.machine.facts, &b = after.machine.facts;
  differ("the CPU", a.cpu, b.cpu);
  differ("the kernel", a.kernel, b.kernel);
  differ("the governor", a.governor, b.governor);
  differ("the number of allowed CPUs", std::to_string(a.allowed_cpus), std::to_string(b.allowed_cpus));
  differ("the quota of CPUs", optional_text(a.quota_cpus), optional_text(b.quota_cpus));
  const std::map<std::string, std::string> old_versions(before.machine.versions.begin(),
                                                        before.machine.versions.end()),
      new_versions(after.machine.versions.begin(), after.machine.versions.end());
  for (const auto& [name, version] : old_versions)
    differ("the version of " + name, version,
           new_versions.contains(name) ? new_versions.at(name) : std::string());
  for (const auto& [name, version] : new_versions)
    if (!old_versions.contains(name)) differ("the version of " + name, "", version);
  if (before.model.hash != after.model.hash)
    cautions.push_back("the compiled file changed: " + before.model.hash.substr(0, 12) + " to " +
                       after.model.hash.substr(0, 12));
  for (const std::string& warning : before.machine.warnings) cautions.push_back("old: " + warning);
  for (const std::string& warning : after.machine.warnings) cautions.push_back("new: " + warning);
  for (const StudyDevice& device : before.devices)
    for (const StudyDevice& other : after.devices)
      if (device.backend == other.backend && device.index == other.index && device.program == other.program) {
        differ("the driver of " + device.id, device.driver, other.driver);
        differ("the number of threads of " + device.id, std::to_string(device.threads),
               std::to_string(other.threads));
      }
}

class Comparer {
 public:
  Comparer(const Study& before, const Study& after, double tolerance)
      : before_(before), after_(after), tolerance_(tolerance) {}

  Result<Comparison> run() {
    if (before_.model.hash != after_.model.hash && before_.model.name != after_.model.name)
      return Status::make(Code::InvalidArgument, "the studies are of different models: ", before_.model.name,
                          " and ", after_.model.name, "; compare two studies of one model");
    std::map<Key, const Series*> old_series;
    for (const Series& series : before_.series) old_series[key_of(before_, series)] = &series;
    for (const Series& series : after_.series) {
      const auto found = old_series.find(key_of(after_, series));
      if (found == old_series.end()) {
        result_.only_new.push_back(name_of(after_, series));
        continue;
      }
      add(*found->second, series);
      old_series.erase(found);
    }
    for (const auto& [key, series] : old_series) result_.only_old.push_back(name_of(before_, *series));
    if (ratios_.empty() && result_.failures.empty())
      return Status::make(Code::InvalidArgument,
                          "the studies have no device, precision and batch size in common", named_devices());
    compare_targets();
    judge();
    compare_machines(before_, after_, result_.cautions);
    return std::move(result_);
  }

 private:
  std::string named_devices() const {
    std::string text;
    for (const std::string& name : result_.only_old) text += "; only in the old one: " + name;
    for (const std::string& name : result_.only_new) text += "; only in the new one: " + name;
    return text;
  }

  void add(const Series& old_series, const Series& new_series) {
    SeriesChange change{.name = name_of(after_, new_series)};
    change.old_knee = old_series.knee ? old_series.knee->batch : 0;
    change.new_knee = new_series.knee ? new_series.knee->batch : 0;
    std::vector<LogRatio> ratios;
    for (const Point& old_point : old_series.points) {
      const Point* new_point = point_at(new_series, old_point.batch);
      const std::string where = change.name + ", batch " + std::to_string(old_point.batch);
      if (new_point == nullptr) {
        result_.only_old.push_back(where);
        continue;
      }
      if (!new_point->error.empty() && old_point.error.empty())
        result_.failures.push_back(where + " fails now: " + new_point->error);
      if (!new_point->error.empty() || !old_point.error.empty()) continue;
      if (!(old_point.timing.median_ms > 0) || !(new_point->timing.median_ms > 0)) continue;
      ratios.push_back(log_ratio(old_point, *new_point));
      change.points.push_back({.batch = old_point.batch,
                               .old_ms = old_point.timing.median_ms,
                               .new_ms = new_point->timing.median_ms,
                               .old_bytes = old_point.memory_bytes,
                               .new_bytes = new_point->memory_bytes,
                               .old_joules = old_point.energy.joules_per_sample,
                               .new_joules = new_point->energy.joules_per_sample});
    }
    for (const Point& new_point : new_series.points)
      if (point_at(old_series, new_point.batch) == nullptr)
        result_.only_new.push_back(change.name + ", batch " + std::to_string(new_point.batch));
    const auto bad = [](const Series& series) {
      return series.difference && !(series.difference->relative <= series.difference->allowed);
    };
    if (bad(new_series) && !bad(old_series))
      result_.failures.push_back(change.name + format(": its error is %.2g now, above the %.2g allowed",
                                                      new_series.difference->relative,
                                                      new_series.difference->allowed));
    if (!new_series.not_measured.empty() && old_series.not_measured.empty())
      result_.failures.push_back(change.name + " is not measured now: " + new_series.not_measured);
    if (ratios.empty()) return;
    result_.series.push_back(std::move(change));
    ratios_.push_back(std::move(ratios));
  }

  void compare_targets() {
    for (const TimeToTarget& target : before_.targets)
      for (const TimeToTarget& other : after_.targets)
        if (target.reached && !other.reached && target.metric == other.metric &&
            target.wanted == other.wanted && target.precision == other.precision &&
            before_.devices[target.device].id == after_.devices[other.device].id)
          result_.failures.push_back(before_.devices[target.device].id + " " + target.precision +
                                     " no longer reaches " + target.metric + " " +
                                     number_text(target.wanted));
  }

  void judge() {
    size_t judgements = ratios_.size();
    for (const auto& ratios : ratios_) judgements += ratios.size();
    const double alone = (1 - kConfidence) / static_cast<double>(std::max<size_t>(judgements, 1));
    const double deviations = normal_quantile(1 - alone / 2);
    result_.regressed = !result_.failures.empty();
    for (size_t s = 0; s < ratios_.size(); ++s) {
      SeriesChange& series = result_.series[s];
      LogRatio mean;
      double squares = 0;
      for (size_t p = 0; p < ratios_[s].size(); ++p) {
        mean.log += ratios_[s][p].log;
        squares += ratios_[s][p].error * ratios_[s][p].error;
        series.points[p].time = judged(ratios_[s][p], tolerance_, deviations);
        result_.regressed |= series.points[p].time.change == Change::Slower;
      }
      const auto count = static_cast<double>(ratios_[s].size());
      mean.log /= count;
      mean.error = std::sqrt(squares) / count;
      series.time = judged(mean, tolerance_, deviations);
      result_.regressed |= series.time.change == Change::Slower;
    }
  }

  const Study &before_, &after_;
  const double tolerance_;
  Comparison result_;
  std::vector<std::vector<LogRatio>> ratios_;  ///< of result_.series, by point
};

const char* word_of(Change change) {
  switch (change) {
    case Change::Same: return "same";
    case Change::Faster: return "faster";
    case Change::Slower: return "SLOWER";
  }
  return "";
}

std::string ratio_text(const TimeChange& time) {
  return format("%.3f", time.ratio);
}
std::string bounds_text(const TimeChange& time) {
  return format("%.3f to %.3f", time.interval.low, time.interval.high);
}

void append_list(std::string& out, const char* head, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out += std::string(head) + "\n";
  for (const std::string& line : lines) out += "  " + printable(line) + "\n";
}

}  // namespace

Result<Comparison> compare_studies(const Study& before, const Study& after, double tolerance) {
  return Comparer(before, after, tolerance).run();
}

std::string comparison_text(const Comparison& comparison, double tolerance) {
  std::string out;
  append_list(out, "Read with care:", comparison.cautions);
  size_t slower = 0, faster = 0;
  for (const SeriesChange& series : comparison.series) {
    std::vector<std::vector<std::string>> rows = {
        {"batch", "old ms", "new ms", "new / old", "95 % interval", "time", "memory", "J/sample"}};
    const auto count = [&](Change change) {
      slower += change == Change::Slower;
      faster += change == Change::Faster;
    };
    for (const PointChange& point : series.points) {
      count(point.time.change);
      std::string memory = "same";
      if (point.old_bytes != point.new_bytes)
        memory = bytes_text(point.old_bytes) + " -> " + bytes_text(point.new_bytes);
      std::string joules = "-";
      if (point.old_joules && point.new_joules && *point.old_joules > 0)
        joules = format("x %.2f", *point.new_joules / *point.old_joules);
      rows.push_back({std::to_string(point.batch), number_text(point.old_ms), number_text(point.new_ms),
                      ratio_text(point.time), bounds_text(point.time), word_of(point.time.change), memory,
                      joules});
    }
    count(series.time.change);
    rows.push_back({"all", "", "", ratio_text(series.time), bounds_text(series.time),
                    word_of(series.time.change), "", ""});
    out += (out.empty() ? "" : "\n") + printable(series.name) + "\n" + columns(rows, 0);
    if (series.old_knee != series.new_knee)
      out += format("the knee moved from batch %lld to %lld\n", static_cast<long long>(series.old_knee),
                    static_cast<long long>(series.new_knee));
  }
  if (!comparison.only_old.empty() || !comparison.only_new.empty()) out += "\n";
  append_list(out, "Only in the old study:", comparison.only_old);
  append_list(out, "Only in the new study:", comparison.only_new);
  if (!comparison.failures.empty()) out += "\n";
  append_list(out, "Worse beside times:", comparison.failures);
  out += "\n";
  if (slower == 0 && faster == 0)
    out += format("No time changed by more than the tolerance of %.3g %% with certainty.\n", 100 * tolerance);
  else
    out += format("%zu slower, %zu faster, by more than the tolerance of %.3g %% with certainty.\n", slower,
                  faster, 100 * tolerance);
  return out;
}

std::string comparison_json(const Comparison& comparison, double tolerance) {
  using nlohmann::ordered_json;
  static constexpr const char* kWords[] = {"same", "faster", "slower"};
  const auto time = [](const TimeChange& change) {
    return ordered_json{{"ratio", change.ratio},
                        {"interval", {{"low", change.interval.low}, {"high", change.interval.high}}},
                        {"change", kWords[static_cast<size_t>(change.change)]}};
  };
  const auto optional = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  ordered_json all = {{"tolerance", tolerance},          {"regressed", comparison.regressed},
                      {"series", ordered_json::array()}, {"failures", comparison.failures},
                      {"only_old", comparison.only_old}, {"only_new", comparison.only_new},
                      {"cautions", comparison.cautions}};
  for (const SeriesChange& series : comparison.series) {
    ordered_json row = {
        {"name", series.name}, {"time", time(series.time)}, {"points", ordered_json::array()}};
    for (const PointChange& point : series.points)
      row["points"].push_back({{"batch", point.batch},
                               {"old_ms", point.old_ms},
                               {"new_ms", point.new_ms},
                               {"time", time(point.time)},
                               {"old_memory_bytes", point.old_bytes},
                               {"new_memory_bytes", point.new_bytes},
                               {"old_joules_per_sample", optional(point.old_joules)},
                               {"new_joules_per_sample", optional(point.new_joules)}});
    all["series"].push_back(std::move(row));
  }
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace librt::bench
