#include "tools/rtbench/study/target.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/cli/exit_code.h"
#include "tools/cli/find_program.h"
#include "tools/rtbench/child.h"

namespace librt::bench {
namespace {

TimeToTarget train_on(LaneContext& context, const Lane& lane, const std::string& rttrain, double seconds) {
  const TargetOptions& options = context.options.target;
  const Series& series = context.study.series[lane.series];
  TimeToTarget result{.device = series.device, .precision = series.precision, .seed = options.seed};
  if (const size_t equals = options.target.find('='); equals != std::string::npos) {
    result.metric = options.target.substr(0, equals);
    result.wanted = std::strtod(options.target.c_str() + equals + 1, nullptr);
  }
  std::vector<std::string> arguments = {rttrain,
                                        path_for_child(lane.model->path),
                                        "--json",
                                        "--backend",
                                        lane.device.backend,
                                        "--device",
                                        std::to_string(lane.device.index),
                                        "--seed",
                                        std::to_string(options.seed)};
  if (context.options.measure.threads > 0) {
    arguments.push_back("--threads");
    arguments.push_back(std::to_string(context.options.measure.threads));
  }
  if (!options.target.empty()) {
    arguments.push_back("--target");
    arguments.push_back(options.target);
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  const EnergyReading first = lane.sensor ? context.meter.read() : EnergyReading();
  Child training;
  result.reason = training.start(arguments);
  if (!result.reason.empty()) return result;
  const ChildTime time = {.seconds = seconds, .without_result = seconds, .grace = grace_of(seconds)};
  double waited = 0;
  int64_t samples = 0;
  const int code = training.follow(time, context.stop, [&](const std::string& line) {
    if (!read_epoch(line, result.metric, result, samples)) return;
    waited += result.waiting_seconds.value_or(0);
    if (samples > 0) context.study.samples_per_epoch = samples;
  });
  if (result.waiting_seconds) result.waiting_seconds = waited;
  result.energy.reason = lane.no_energy;
  if (lane.sensor) {
    const EnergyUse use = context.meter.use(*lane.sensor, first, context.meter.read());
    result.energy = {.watts = use.watts, .source = use.source, .reason = use.reason};
    result.total_joules = use.joules;
  }
  result.reached = !options.target.empty() && code == tools::kFine && !training.was_ended();
  if (context.stop.requested())
    result.reason = "interrupted";
  else if (training.was_ended())
    result.reason = "it took longer than " + duration_text(seconds);
  else if (code == tools::kDifferent)
    result.reason = "the training ended before: --epochs allows more";
  else if (code != tools::kFine)
    result.reason = last_error("rttrain", training.errors());
  return result;
}

}  // namespace

bool read_epoch(const std::string& line, const std::string& metric, TimeToTarget& result, int64_t& samples) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("epoch")) return false;
  const auto number = [&](const std::string& name) -> std::optional<double> {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  result.epochs = static_cast<int64_t>(number("epoch").value_or(0));
  result.steps = static_cast<int64_t>(number("step").value_or(0));
  result.seconds = number("total_seconds");
  result.waiting_seconds = number("data_wait_seconds");
  result.samples_per_second = number("samples_per_second");
  samples = std::llround(result.samples_per_second.value_or(0) * number("seconds").value_or(0));
  // A target of a loss or an error is reached from above.
  const bool falls = metric == "loss" || metric == "mse" || metric == "mae" || metric == "perplexity" ||
                     metric == "label_error_rate";
  if (const auto value = number("validation_" + metric))
    if (!result.best || (falls ? *value < *result.best : *value > *result.best)) result.best = value;
  return true;
}

void measure_targets(LaneContext& context, const std::vector<Lane>& lanes) {
  const TargetOptions& options = context.options.target;
  if (options.arguments.empty()) return;
  std::vector<const Lane*> wanted;
  for (const Lane& lane : lanes) {
    const Series& series = context.study.series[lane.series];
    if (series.mode == Mode::Train && (series.precision == "fp32" || !context.options.precisions.empty()))
      wanted.push_back(&lane);
  }
  context.progress.begin("training", wanted.size());
  const std::string rttrain = tools::find_program("rttrain");
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Series& series = context.study.series[wanted[i]->series];
    double seconds = context.budget.left() / static_cast<double>(wanted.size() - i);
    if (options.most_seconds > 0) seconds = std::min(seconds, options.most_seconds);
    TimeToTarget result{.device = series.device, .precision = series.precision, .seed = options.seed};
    if (rttrain.empty())
      result.reason = "rttrain was not found beside rtbench or in PATH";
    else if (context.stop.requested())
      result.reason = "interrupted";
    else if (seconds <= 0)
      result.reason = "the budget was spent";
    else {
      context.progress.step("training on " + name_of(context.study, series));
      result = train_on(context, *wanted[i], rttrain, seconds);
    }
    context.study.targets.push_back(std::move(result));
  }
}

}  // namespace librt::bench
