#include "tools/rtbench/study/cost.h"

#include <algorithm>

#include "tools/rtbench/price.h"
#include "tools/rtbench/study/analysis.h"

namespace librt::bench {
namespace {

// Loads are compared up to this many times the highest throughput.
constexpr double kMostLoad = 4;

constexpr double kJoulesPerKwh = 3.6e6;

Costs costs_of(const Study& study, const StudyDevice& device, const Point& point) {
  return {.device = device.id,
          .per_hour = device.price_per_hour.value_or(0),
          .electricity_per_kwh = study.electricity_per_kwh,
          .watts = point.energy.watts,
          .idle_watts = device.idle_watts,
          .samples_per_second = point.samples_per_second};
}

// Why a cost is missing, or what it leaves out; empty: it is whole.
std::string gap(const Study& study, const StudyDevice& device, bool has_power) {
  const bool electricity = study.electricity_per_kwh.has_value();
  if (!device.price_per_hour && !electricity) return "no --price for " + device.id;
  if (electricity && !has_power) return "without electricity: the power of " + device.id + " is not known";
  if (!device.price_per_hour) return "electricity alone: no --price for " + device.id;
  return {};
}

bool is_known(const Study& study, const StudyDevice& device, bool has_power) {
  return device.price_per_hour || (study.electricity_per_kwh && has_power);
}

// The cheapest point of each device at full load, and from which load which device is cheaper.
void compare_loads(Study& study, Mode mode) {
  std::vector<Costs> costs;
  std::vector<size_t> series_of;
  double most = 0;
  for (size_t device = 0; device < study.devices.size(); ++device) {
    const Point* best = nullptr;
    size_t of = 0;
    for (size_t i = 0; i < study.series.size(); ++i) {
      if (study.series[i].mode != mode || study.series[i].device != device) continue;
      for (const Point* point : valid_points(study.series[i]))
        if (point->cost.per_million_samples &&
            (best == nullptr || *point->cost.per_million_samples < *best->cost.per_million_samples)) {
          best = point;
          of = i;
        }
    }
    if (best == nullptr) continue;
    costs.push_back(costs_of(study, study.devices[device], *best));
    series_of.push_back(of);
    most = std::max(most, best->samples_per_second);
  }
  if (costs.size() < 2) return;
  const std::vector<LoadRange> ranges = cheapest_by_load(costs, kMostLoad * most);
  for (size_t i = 1; i < ranges.size(); ++i)
    study.load_crossovers.push_back(
        {series_of[ranges[i - 1].device], series_of[ranges[i].device], ranges[i].from});
}

}  // namespace

void add_costs(Study& study) {
  const bool any = study.electricity_per_kwh ||
                   std::any_of(study.devices.begin(), study.devices.end(),
                               [](const StudyDevice& device) { return device.price_per_hour.has_value(); });
  if (!any) return;
  for (Series& series : study.series) {
    const StudyDevice& device = study.devices[series.device];
    for (Point& point : series.points) {
      if (!point.error.empty()) continue;
      point.cost.reason = gap(study, device, point.energy.watts.has_value());
      if (!is_known(study, device, point.energy.watts.has_value())) continue;
      const Costs costs = costs_of(study, device, point);
      point.cost.per_million_samples = per_million(costs);
      if (series.mode == Mode::Train && study.samples_per_epoch)
        point.cost.per_epoch = per_epoch(costs, *study.samples_per_epoch);
    }
  }
  for (TimeToTarget& target : study.targets) {
    const StudyDevice& device = study.devices[target.device];
    const bool has_power = target.total_joules.has_value();
    target.cost.reason = gap(study, device, has_power);
    if (!target.seconds || !is_known(study, device, has_power)) continue;
    const double cost =
        device.price_per_hour.value_or(0) * *target.seconds / 3600 +
        study.electricity_per_kwh.value_or(0) * target.total_joules.value_or(0) / kJoulesPerKwh;
    if (target.epochs > 0) target.cost.per_epoch = cost / static_cast<double>(target.epochs);
    if (target.reached) target.total_cost = cost;
  }
  compare_loads(study, Mode::Infer);
  compare_loads(study, Mode::Train);
}

}  // namespace librt::bench
