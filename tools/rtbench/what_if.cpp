#include "tools/rtbench/what_if.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace librt::bench {
namespace {

constexpr int64_t kLargestBatch = 4096;
constexpr double kKneeGrowth = 0.05;
constexpr size_t kSlowest = 5;

// Kernels reach less of a peak that tensor cores have than of one of plain arithmetic: their operands have to
// arrive that much faster.
constexpr double kTensorShare = 0.5;

DeviceProfile scaled(DeviceProfile profile, double rates, double fixed) {
  profile.flops_f32 *= rates;
  profile.memory_bandwidth *= rates;
  profile.transfer_bandwidth *= rates;
  profile.launch_seconds *= fixed;
  profile.submit_seconds *= fixed;
  for (TimeCurve& curve : profile.curves)
    for (size_t i = 0; i < curve.count; ++i) curve.points[i].seconds /= static_cast<float>(rates);
  return profile;
}

double fixed_seconds(const Workload& work, const DeviceProfile& profile) {
  return profile.submit_seconds + profile.launch_seconds * static_cast<double>(work.nodes.size());
}

PredictedPoint point_at(const Candidate& device, const ModelWork& model, int64_t batch) {
  const Workload& work = model.work;
  const auto samples = static_cast<double>(batch);
  const auto seconds = [&](double rates, double fixed) {
    return run_seconds(work, device.host_memory, scaled(device.profile, rates, fixed));
  };
  PredictedPoint point{.batch = batch};
  const double expected = seconds(1, 1);
  point.milliseconds = 1e3 * expected;
  point.least_ms = 1e3 * seconds(device.optimism, 1 / device.optimism);
  point.most_ms = 1e3 * seconds(1 / device.pessimism, device.pessimism);
  point.samples_per_second = samples / expected;
  point.transfer_share = device.host_memory ? 0
                                            : (work.input_bytes + work.output_bytes) /
                                                  device.profile.transfer_bandwidth / expected;
  point.fixed_share = std::min(1 - point.transfer_share, fixed_seconds(work, device.profile) / expected);
  point.work_share = 1 - point.transfer_share - point.fixed_share;
  point.memory_bytes = work.weight_bytes + model.live_bytes;
  if (device.watts) point.joules_per_sample = *device.watts * expected / samples;
  return point;
}

void add_costs(PredictedDevice& device, const WhatIfOptions& options) {
  const auto price = device.device.price_per_hour;
  if (!price && !options.electricity_per_kwh) return;
  if (options.electricity_per_kwh && !device.device.watts) return;
  for (PredictedPoint& point : device.points)
    point.cost_per_million = per_million({.device = device.device.name,
                                          .per_hour = price.value_or(0),
                                          .electricity_per_kwh = options.electricity_per_kwh,
                                          .watts = device.device.watts,
                                          .idle_watts = device.device.idle_watts,
                                          .samples_per_second = point.samples_per_second});
}

class Predictor {
 public:
  Predictor(const BenchModel& model, const WhatIfOptions& options) : model_(model), options_(options) {}

  std::optional<Prediction> run(std::vector<Candidate> candidates, std::string& error) {
    Prediction prediction{.model = model_.name, .precision = model_.precision};
    symbol_ = batch_symbol_of(model_, fixed_, error);
    if (at(symbol_.empty() ? fixed_ : 1, error) == nullptr) return std::nullopt;
    for (Candidate& candidate : candidates) {
      prediction.devices.push_back({.device = std::move(candidate)});
      if (prediction.devices.back().device.problem.empty()) fill(prediction.devices.back());
    }
    cross(prediction);
    loads(prediction);
    return prediction;
  }

 private:
  // The work at a batch; null: the shapes do not fit.
  const ModelWork* at(int64_t batch, std::string& error) {
    const auto known = works_.find(batch);
    if (known != works_.end()) return &known->second;
    std::map<std::string, int64_t> extents = options_.extents;
    if (!symbol_.empty()) extents[symbol_] = batch;
    auto work = model_work(model_, extents, error);
    return work ? &works_.emplace(batch, std::move(*work)).first->second : nullptr;
  }

  // Nothing: it does not fit.
  std::optional<PredictedPoint> predicted(const Candidate& device, int64_t batch) {
    std::string ignored;
    const ModelWork* work = at(batch, ignored);
    if (work == nullptr) return std::nullopt;
    const PredictedPoint point = point_at(device, *work, batch);
    if (device.memory_bytes && point.memory_bytes > *device.memory_bytes) return std::nullopt;
    return point;
  }

  void fill(PredictedDevice& device) {
    const int64_t first = symbol_.empty() ? fixed_ : 1;
    std::optional<PredictedPoint> last;
    for (int64_t batch = first;; batch *= 2) {
      const auto point = predicted(device.device, batch);
      if (!point) {
        device.knee_reason = "no memory for batch " + std::to_string(batch);
        break;
      }
      device.points.push_back(*point);
      if (symbol_.empty()) break;
      const double growth = last ? point->samples_per_second / last->samples_per_second - 1 : 1;
      if (growth < kKneeGrowth) {
        char text[80];
        std::snprintf(text, sizeof(text), "throughput grows by %.1f %% to batch %lld", 100 * growth,
                      static_cast<long long>(batch));
        device.knee = last->batch;
        device.knee_reason = text;
        break;
      }
      last = point;
      if (batch >= kLargestBatch) {
        device.knee_reason = "not reached at batch " + std::to_string(batch);
        break;
      }
    }
    if (device.points.empty()) {
      device.device.problem = device.knee_reason;
      return;
    }
    if (device.knee == 0 && !symbol_.empty()) device.knee = device.points.back().batch;
    if (!symbol_.empty())
      for (const int64_t batch : options_.batches) {
        const bool known = std::any_of(device.points.begin(), device.points.end(),
                                       [&](const PredictedPoint& point) { return point.batch == batch; });
        if (known) continue;
        if (const auto point = predicted(device.device, batch)) device.points.push_back(*point);
      }
    std::sort(device.points.begin(), device.points.end(),
              [](const PredictedPoint& a, const PredictedPoint& b) { return a.batch < b.batch; });
    add_costs(device, options_);
    name_slowest(device, first);
  }

  void name_slowest(PredictedDevice& device, int64_t batch) {
    std::string ignored;
    const ModelWork* work = at(batch, ignored);
    for (const NodeWork& node : work->work.nodes)
      device.slowest.push_back({.name = node.node != nullptr ? node.node->name : std::string(),
                                .op = node.node != nullptr ? std::string(op_name(*node.node)) : std::string(),
                                .family = kFamilyNames[static_cast<size_t>(node.family)],
                                .milliseconds = 1e3 * node_seconds(node, work->work, device.device.profile),
                                .flops = node.flops,
                                .bytes = node.bytes});
    std::stable_sort(
        device.slowest.begin(), device.slowest.end(),
        [](const PredictedNode& a, const PredictedNode& b) { return a.milliseconds > b.milliseconds; });
    device.slowest.resize(std::min(device.slowest.size(), kSlowest));
  }

  // The sign of throughput(b) - throughput(a); nothing where one does not fit.
  std::optional<bool> is_ahead(const Candidate& a, const Candidate& b, int64_t batch) {
    const auto first = predicted(a, batch), other = predicted(b, batch);
    if (!first || !other) return std::nullopt;
    return other->samples_per_second > first->samples_per_second;
  }

  void cross(Prediction& prediction) {
    if (symbol_.empty()) return;
    for (size_t a = 0; a < prediction.devices.size(); ++a)
      for (size_t b = a + 1; b < prediction.devices.size(); ++b) {
        if (!prediction.devices[a].device.problem.empty() || !prediction.devices[b].device.problem.empty())
          continue;
        const bool swapped = is_ahead(prediction.devices[a].device, prediction.devices[b].device, 1) == true;
        const size_t below = swapped ? b : a, above = swapped ? a : b;
        const Candidate& slow = prediction.devices[above].device;
        const Candidate& fast = prediction.devices[below].device;
        PredictedCrossover crossover{.below = below, .above = above};
        int64_t low = 1, high = 2;
        while (high <= kLargestBatch && is_ahead(fast, slow, high) == false) {
          low = high;
          high *= 2;
        }
        if (high <= kLargestBatch && is_ahead(fast, slow, high) == true) {
          while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            (is_ahead(fast, slow, middle) == true ? high : low) = middle;
          }
          crossover.batch = high;
        }
        const auto apart = [&](const Candidate& quick, const Candidate& late, int64_t batch) {
          const auto p = predicted(quick, batch), q = predicted(late, batch);
          return p && q && p->most_ms < q->least_ms;
        };
        crossover.certain = apart(fast, slow, 1) && (crossover.batch == 0 || apart(slow, fast, 2 * high));
        prediction.crossovers.push_back(crossover);
      }
  }

  void loads(Prediction& prediction) {
    std::vector<Costs> costs;
    double most = 0;
    for (const PredictedDevice& device : prediction.devices) {
      if (device.points.empty() || !device.points.back().cost_per_million) return;
      const auto best = std::max_element(device.points.begin(), device.points.end(),
                                         [](const PredictedPoint& a, const PredictedPoint& b) {
                                           return a.samples_per_second < b.samples_per_second;
                                         });
      costs.push_back({.device = device.device.name,
                       .per_hour = device.device.price_per_hour.value_or(0),
                       .electricity_per_kwh = options_.electricity_per_kwh,
                       .watts = device.device.watts,
                       .idle_watts = device.device.idle_watts,
                       .samples_per_second = best->samples_per_second});
      most = std::max(most, best->samples_per_second);
    }
    if (costs.size() > 1) prediction.loads = cheapest_by_load(costs, most);
  }

  const BenchModel& model_;
  const WhatIfOptions& options_;
  std::string symbol_;
  int64_t fixed_ = 1;
  std::map<int64_t, ModelWork> works_;
};

}  // namespace

Candidate candidate_of(const DeviceDescription& device, const std::string& precision) {
  Candidate made{.name = device.name,
                 .title = device.title,
                 .basis = "data sheet",
                 .assumed = device.assumed,
                 .host_memory = device.type != DeviceType::DiscreteGpu,
                 .memory_bytes = device.memory_bytes,
                 .watts = device.watts,
                 .idle_watts = device.idle_watts,
                 .price_per_hour = device.price_per_hour,
                 .optimism = 1.5,
                 .pessimism = 2.5};
  const auto peak = [&](const char* name) -> std::optional<double> {
    const auto found = device.peak_flops.find(name);
    return found == device.peak_flops.end() ? std::nullopt : std::optional<double>(found->second);
  };
  const bool weights_only = precision == "int8-weights" || precision == "int4-weights";
  const std::string wanted = precision.empty() || weights_only ? "fp32" : precision;
  if (!peak(wanted.c_str())) {
    made.problem = "its entry states no peak rate of " + wanted;
    return made;
  }
  made.profile.flops_f32 = *peak("fp32");
  if (wanted == "tf32") made.profile.flops_f32 = std::max(*peak("fp32"), kTensorShare * *peak("tf32"));
  const auto relative = [&](std::optional<double> rate) {
    if (!rate) return 1.0;
    const double times = *rate / *peak("fp32");
    return times > 2 ? kTensorShare * times : times;
  };
  made.profile.rate_16bit = relative(peak(wanted == "bf16" ? "bf16" : "fp16"));
  made.profile.rate_8bit = relative(peak("int8"));
  made.profile.memory_bandwidth = device.memory_bandwidth;
  made.profile.transfer_bandwidth = device.transfer_bandwidth;
  made.profile.launch_seconds = device.launch_seconds;
  made.profile.submit_seconds = device.submit_seconds;
  return made;
}

Candidate candidate_of(const std::string& name, const std::string& title, const DeviceProfile& profile,
                       bool host_memory, uint64_t memory_bytes) {
  Candidate made{.name = name,
                 .title = title,
                 .basis = "measured profile",
                 .profile = profile,
                 .host_memory = host_memory,
                 .optimism = 1.25,
                 .pessimism = 1.5};
  if (memory_bytes > 0) made.memory_bytes = static_cast<double>(memory_bytes);
  if (profile.measured_watts) made.watts = profile.watts;
  return made;
}

std::optional<Prediction> what_if(const BenchModel& model, std::vector<Candidate> candidates,
                                  const WhatIfOptions& options, std::string& error) {
  for (Candidate& candidate : candidates)
    if (options.prices)
      if (const auto price = price_of(*options.prices, candidate.name)) candidate.price_per_hour = price;
  return Predictor(model, options).run(std::move(candidates), error);
}

}  // namespace librt::bench
