// Predictions as tables, sentences and JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/rtbench/what_if.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using words::format;

std::string table(const PredictedDevice& device) {
  std::string out = format("%8s %12s %25s %14s %9s %9s %9s %10s %12s\n", "batch", "ms", "range, ms",
                           "samples/s", "work", "fixed", "transfer", "J/sample", "per million");
  for (const PredictedPoint& point : device.points)
    out += format("%8lld %12.4g %25s %14.5g %8.0f%% %8.0f%% %8.0f%% %10s %12s\n",
                  static_cast<long long>(point.batch), point.milliseconds,
                  format("%.4g to %.4g", point.least_ms, point.most_ms).c_str(), point.samples_per_second,
                  100 * point.work_share, 100 * point.fixed_share, 100 * point.transfer_share,
                  point.joules_per_sample ? format("%.3g", *point.joules_per_sample).c_str() : "-",
                  point.cost_per_million ? format("%.4g", *point.cost_per_million).c_str() : "-");
  return out;
}

std::string device_text(const PredictedDevice& device) {
  const Candidate& candidate = device.device;
  std::string out =
      "\n" + candidate.name + ": " + candidate.title + ", predicted from its " + candidate.basis + "\n";
  if (!candidate.problem.empty()) return out + "  not predicted: " + candidate.problem + "\n";
  out += table(device);
  if (device.knee > 0)
    out += format("knee (predicted): batch %lld; %s\n", static_cast<long long>(device.knee),
                  device.knee_reason.c_str());
  if (!candidate.watts) out += "energy: not available: the power of this device is not known\n";
  for (size_t i = 0; i < candidate.assumed.size(); ++i)
    out += (i == 0 ? "assumed, as for this kind of device: " : ", ") + candidate.assumed[i];
  if (!candidate.assumed.empty()) out += "\n";
  for (const PredictedNode& node : device.slowest)
    out += format("  %-40.40s %-16s %-14s %10.4g ms\n", node.name.c_str(), node.op.c_str(),
                  node.family.c_str(), node.milliseconds);
  return out;
}

std::string crossover_text(const Prediction& prediction, const PredictedCrossover& crossover) {
  const std::string& below = prediction.devices[crossover.below].device.name;
  const std::string& above = prediction.devices[crossover.above].device.name;
  const char* doubt = crossover.certain ? "" : "; their ranges overlap: too close to call";
  if (crossover.batch == 0)
    return below + " is predicted to be faster than " + above + " at every batch" + doubt + ".\n";
  return format("%s is predicted to be faster up to batch %lld, %s from batch %lld%s.\n", below.c_str(),
                static_cast<long long>(crossover.batch - 1), above.c_str(),
                static_cast<long long>(crossover.batch), doubt);
}

template <class Number>
nlohmann::ordered_json or_null(const std::optional<Number>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_of(const PredictedDevice& device) {
  nlohmann::ordered_json out{{"name", device.device.name},
                             {"title", device.device.title},
                             {"predicted", true},
                             {"basis", device.device.basis},
                             {"assumed", device.device.assumed}};
  if (!device.device.problem.empty()) {
    out["problem"] = device.device.problem;
    return out;
  }
  out["watts"] = or_null(device.device.watts);
  out["price_per_hour"] = or_null(device.device.price_per_hour);
  out["knee"] = device.knee;
  out["knee_reason"] = device.knee_reason;
  for (const PredictedPoint& point : device.points)
    out["points"].push_back({{"batch", point.batch},
                             {"ms", point.milliseconds},
                             {"least_ms", point.least_ms},
                             {"most_ms", point.most_ms},
                             {"samples_per_second", point.samples_per_second},
                             {"work_share", point.work_share},
                             {"fixed_share", point.fixed_share},
                             {"transfer_share", point.transfer_share},
                             {"memory_bytes", point.memory_bytes},
                             {"joules_per_sample", or_null(point.joules_per_sample)},
                             {"cost_per_million", or_null(point.cost_per_million)}});
  for (const PredictedNode& node : device.slowest)
    out["slowest"].push_back({{"name", node.name},
                              {"op", node.op},
                              {"family", node.family},
                              {"ms", node.milliseconds},
                              {"flops", node.flops},
                              {"bytes", node.bytes}});
  return out;
}

}  // namespace

std::string what_if_text(const Prediction& prediction) {
  std::string out = prediction.model + (prediction.precision.empty() ? "" : " in " + prediction.precision) +
                    ": PREDICTED from the cost of each node; nothing was run on these devices.\n";
  for (const PredictedDevice& device : prediction.devices) out += device_text(device);
  if (!prediction.crossovers.empty()) out += "\n";
  for (const PredictedCrossover& crossover : prediction.crossovers)
    out += crossover_text(prediction, crossover);
  for (const LoadRange& range : prediction.loads)
    out += format("Cheapest from %.4g to %.4g samples per second, idle time included (predicted): %s.\n",
                  range.from, range.to, prediction.devices[range.device].device.name.c_str());
  return out;
}

std::string what_if_json(const Prediction& prediction) {
  nlohmann::ordered_json out{
      {"predicted", true}, {"model", prediction.model}, {"precision", prediction.precision}};
  out["devices"] = nlohmann::ordered_json::array();
  for (const PredictedDevice& device : prediction.devices) out["devices"].push_back(json_of(device));
  out["crossovers"] = nlohmann::ordered_json::array();
  for (const PredictedCrossover& crossover : prediction.crossovers)
    out["crossovers"].push_back({{"below", prediction.devices[crossover.below].device.name},
                                 {"above", prediction.devices[crossover.above].device.name},
                                 {"batch", crossover.batch},
                                 {"certain", crossover.certain}});
  out["cheapest_by_load"] = nlohmann::ordered_json::array();
  for (const LoadRange& range : prediction.loads)
    out["cheapest_by_load"].push_back({{"device", prediction.devices[range.device].device.name},
                                       {"from_samples_per_second", range.from},
                                       {"to_samples_per_second", range.to}});
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace librt::bench
