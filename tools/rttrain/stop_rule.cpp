#include "tools/rttrain/stop_rule.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace rt::train {

double value_of(std::span<const Measured> measured, const std::string& metric) noexcept {
  for (const Measured& each : measured)
    if (each.name == metric) return each.value;
  return std::nan("");
}

StopRule::StopRule(const LoopOptions& options, std::vector<std::string> metrics)
    : options_(options), metrics_(std::move(metrics)) {
  if (metrics_.empty()) return;
  monitor_ = !options.monitor.empty() ? options.monitor
             : options.target         ? options.target->metric
                                      : metrics_[0];
}

rt::Status StopRule::check() const {
  if (metrics_.empty()) return {};
  if (options_.target)
    if (rt::Status status = check("--target", options_.target->metric); !status) return status;
  return check("--monitor", monitor_);
}

rt::Status StopRule::check(const char* option, const std::string& metric) const {
  if (std::find(metrics_.begin(), metrics_.end(), metric) != metrics_.end()) return {};
  std::string names;
  for (const std::string& name : metrics_) names += (names.empty() ? "" : ", ") + name;
  return bad_data(std::string(option) + ": there is no metric '" + metric + "'; this model's are " + names);
}

bool StopRule::judge(const EpochRecord& record, Position& position) {
  if (metrics_.empty()) return false;
  if (options_.target) {
    const double value = value_of(record.validation, options_.target->metric);
    is_reached_ = larger_is_better(options_.target->metric) ? value >= options_.target->value
                                                            : value <= options_.target->value;
  }
  const double value = value_of(record.validation, monitor_);
  const bool is_better = std::isnan(position.best) ||
                         (larger_is_better(monitor_) ? value > position.best : value < position.best);
  position.waiting = is_better ? 0 : position.waiting + 1;
  if (is_better) position.best = value;
  return is_better;
}

bool StopRule::is_out_of_patience(const Position& position) const noexcept {
  return options_.patience > 0 && position.waiting >= options_.patience;
}

std::string StopRule::best_text(const Position& position) const {
  if (monitor_.empty() || std::isnan(position.best)) return {};
  char text[64];
  std::snprintf(text, sizeof text, " %.6f", position.best);
  return "validation " + monitor_ + text;
}

std::string StopRule::reason(const Position& position) const {
  if (is_reached_) {
    char value[64];
    std::snprintf(value, sizeof value, "%g", options_.target->value);
    return "the target " + options_.target->metric + "=" + value + " is reached";
  }
  if (!is_out_of_patience(position)) return {};
  return "no better validation " + monitor_ + " in " + std::to_string(position.waiting) +
         (position.waiting == 1 ? " epoch" : " epochs") + " (--patience)";
}

}  // namespace rt::train
