#include "tools/rtbench/study/predicted.h"

#include <algorithm>
#include <set>

#include "tools/rtbench/price.h"
#include "tools/rtbench/source.h"
#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/what_if.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

const char* kind_text(const DeviceDescription& device) {
  return device.type == DeviceType::Cpu           ? "CPU"
         : device.type == DeviceType::DiscreteGpu ? "discrete GPU"
                                                  : "integrated GPU";
}

// Why there is no cost, or what it leaves out; as for measured devices (cost.cpp).
std::string cost_gap(const Candidate& device, const Study& study) {
  if (study.electricity_per_kwh && !device.watts)
    return "electricity was given, and the power of " + device.name + " is not known";
  if (device.price_per_hour) return {};
  return study.electricity_per_kwh ? "electricity alone: no --price for " + device.name
                                   : "no --price for " + device.name;
}

Point point_of(const PredictedPoint& predicted, const std::string& no_energy, const std::string& gap) {
  Point point{.batch = predicted.batch};
  point.timing.median_ms = point.timing.p90_ms = point.timing.p99_ms = predicted.milliseconds;
  point.timing.least_ms = predicted.least_ms;
  point.timing.interval = {predicted.least_ms, predicted.most_ms};
  point.timing.imprecise = "predicted";
  const auto samples = static_cast<double>(predicted.batch);
  point.samples_per_second = predicted.samples_per_second;
  point.samples_interval = {1e3 * samples / predicted.most_ms, 1e3 * samples / predicted.least_ms};
  point.memory_bytes = static_cast<uint64_t>(predicted.memory_bytes);
  point.energy.joules_per_sample = predicted.joules_per_sample;
  if (predicted.joules_per_sample)
    point.energy.source = "predicted: stated power x predicted time";
  else
    point.energy.reason = no_energy;
  point.cost.per_million_samples = predicted.cost_per_million;
  point.cost.reason = gap;
  return point;
}

// The point that costs least at full load, of the inference on a device; null: no cost is known.
const Point* cheapest_point(const Study& study, size_t device) {
  const Point* best = nullptr;
  for (const Series& series : study.series) {
    if (series.device != device || series.mode != Mode::Infer) continue;
    for (const Point* point : valid_points(series))
      if (point->cost.per_million_samples &&
          (best == nullptr || *point->cost.per_million_samples < *best->cost.per_million_samples))
        best = point;
  }
  return best;
}

// "At full load a million samples are predicted to cost 0.12 (0.08 to 0.31) on l4, ..."; empty: no cost.
std::string cost_text(const Study& study, size_t predicted) {
  const Point* point = cheapest_point(study, predicted);
  if (point == nullptr) return {};
  const double cost = *point->cost.per_million_samples;
  const auto at_rate = [&](double rate) {
    return words::number_text(cost * point->samples_per_second / rate);
  };
  std::string text = "At full load a million samples are predicted to cost " + words::number_text(cost) +
                     " (" + at_rate(point->samples_interval.high) + " to " +
                     at_rate(point->samples_interval.low) + ") on " + study.devices[predicted].id;
  const Point* least = nullptr;
  size_t of = 0;
  for (size_t i = 0; i < study.devices.size(); ++i) {
    if (study.devices[i].predicted) continue;
    const Point* other = cheapest_point(study, i);
    if (other == nullptr ||
        (least != nullptr && *other->cost.per_million_samples >= *least->cost.per_million_samples))
      continue;
    least = other;
    of = i;
  }
  if (least != nullptr)
    text += "; measured, they cost " + words::number_text(*least->cost.per_million_samples) + " on " +
            study.devices[of].id;
  return text + ".";
}

}  // namespace

bool add_predictions(Study& study, const std::vector<std::string>& names, const StudyOptions& options,
                     std::string& error) {
  const auto described = described_devices(names, error);
  if (!described) return false;
  int code = 0;
  const auto model = open_source(options.model, Mode::Infer, code);
  if (!model) {
    error = options.model + " cannot be opened for predictions";
    return false;
  }
  std::set<int64_t> batches;
  for (const Series& series : study.series)
    for (const Point& point : series.points) batches.insert(point.batch);
  WhatIfOptions wanted{.batches = {batches.begin(), batches.end()}, .extents = options.measure.dims};
  std::vector<std::string> priced = options.predicted;
  for (const StudyDevice& device : study.devices) priced.push_back(device.id);
  if (!options.price.empty()) {
    wanted.prices = parse_prices(options.price, priced, error);
    if (!wanted.prices) return false;
  }
  wanted.electricity_per_kwh = study.electricity_per_kwh;
  std::vector<Candidate> candidates;
  for (const DeviceDescription& device : *described) candidates.push_back(candidate_of(device, ""));
  const auto prediction = what_if(*model, std::move(candidates), wanted, error);
  if (!prediction) return false;
  for (size_t i = 0; i < prediction->devices.size(); ++i) {
    const PredictedDevice& predicted = prediction->devices[i];
    const DeviceDescription& description = (*described)[i];
    StudyDevice device{.id = description.name,
                       .backend = "described",
                       .name = description.title + " (predicted)",
                       .type = kind_text(description),
                       .program = "prediction from " + description.source,
                       .predicted = true};
    device.memory_bytes = static_cast<uint64_t>(description.memory_bytes.value_or(0));
    device.idle_watts = description.idle_watts;
    device.price_per_hour = predicted.device.price_per_hour;
    Series series{.device = study.devices.size(), .precision = "fp32", .mode = Mode::Infer};
    for (const PredictedPoint& point : predicted.points)
      series.points.push_back(
          point_of(point, "the power of this device is not known", cost_gap(predicted.device, study)));
    if (predicted.knee > 0) {
      const auto at = std::find_if(series.points.begin(), series.points.end(),
                                   [&](const Point& point) { return point.batch == predicted.knee; });
      if (at != series.points.end())
        series.knee = Knee{predicted.knee, at->samples_per_second,
                           predicted.knee_reason.starts_with("throughput grows"),
                           "predicted: " + predicted.knee_reason};
    }
    series.not_measured = predicted.device.problem;
    study.devices.push_back(std::move(device));
    study.series.push_back(std::move(series));
    study.verdict.push_back({.about = Sentence::About::Caution,
                             .text = description.name + ": figures are predictions from public figures of " +
                                     description.title + "; nothing was run on it."});
    if (const std::string cost = cost_text(study, study.devices.size() - 1); !cost.empty())
      study.verdict.push_back({.about = Sentence::About::Cost, .mode = Mode::Infer, .text = cost});
  }
  return true;
}

}  // namespace librt::bench
