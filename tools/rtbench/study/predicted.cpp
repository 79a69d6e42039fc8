#include "tools/rtbench/study/predicted.h"

#include <algorithm>
#include <set>

#include "tools/rtbench/source.h"
#include "tools/rtbench/what_if.h"

namespace librt::bench {
namespace {

const char* kind_text(const DeviceDescription& device) {
  return device.type == DeviceType::Cpu           ? "CPU"
         : device.type == DeviceType::DiscreteGpu ? "discrete GPU"
                                                  : "integrated GPU";
}

Point point_of(const PredictedPoint& predicted, const std::string& no_energy) {
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
  if (!predicted.cost_per_million) point.cost.reason = "no price was given for this device";
  return point;
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
    device.price_per_hour = description.price_per_hour;
    Series series{.device = study.devices.size(), .precision = "fp32", .mode = Mode::Infer};
    for (const PredictedPoint& point : predicted.points)
      series.points.push_back(point_of(point, "the power of this device is not known"));
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
  }
  return true;
}

}  // namespace librt::bench
