#include "tools/rtbench/experiments/training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/cli/exit_code.h"
#include "tools/cli/find_program.h"

namespace librt::bench {
namespace {

using nlohmann::json;

/// Records of a log, so that a training that is cut short has some, after a few steps already.
constexpr int64_t kRecords = 1000;

std::optional<double> number_of(const json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<TrainingEpoch> epoch_of(const std::string& line) {
  constexpr std::string_view kValidation = "validation_";
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("epoch")) return std::nullopt;
  TrainingEpoch epoch{.seconds = number_of(object, "seconds").value_or(0),
                      .waited_seconds = number_of(object, "data_wait_seconds").value_or(0),
                      .loss = number_of(object, "loss").value_or(NAN),
                      .validation = {}};
  for (const auto& item : object.items())
    if (item.key().starts_with(kValidation) && item.value().is_number())
      epoch.validation[item.key().substr(kValidation.size())] = item.value().get<double>();
  return epoch;
}

void read_log(const std::string& path, int64_t every, int64_t batch, TrainingRun& run) {
  std::ifstream log(path);
  double waited = 0, seconds = 0;
  for (std::string line; std::getline(log, line);) {
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object() || object.value("kind", "") != "step") continue;
    const auto rate = number_of(object, "samples_per_second");
    if (!rate || *rate <= 0) continue;
    run.sample_seconds.push_back(1 / *rate);
    const double took = static_cast<double>(every * batch) / *rate;
    seconds += took;
    waited += std::min(took, number_of(object, "data_wait_seconds").value_or(0));
  }
  if (seconds > 0) run.waited_share = waited / seconds;
  // The first record's time has the planning and the choice of kernels in it.
  if (run.sample_seconds.size() > 1) run.sample_seconds.erase(run.sample_seconds.begin());
}

// rttrain writes a line for each record, in one call.
bool has_step(const std::string& path) {
  std::ifstream log(path);
  for (std::string line; std::getline(log, line);)
    if (line.find("\"step\"") != std::string::npos) return true;
  return false;
}

Interval interval_of(const std::vector<double>& values) {
  return median_interval({values});
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace

Cell TrainingRun::total_seconds() const {
  double seconds = 0;
  for (const TrainingEpoch& epoch : epochs) seconds += epoch.seconds;
  if (is_complete()) return Cell::of(seconds);
  const auto left = static_cast<double>(planned_epochs - static_cast<int64_t>(epochs.size()));
  double rest = 0;
  if (!epochs.empty())
    rest = left * epochs.back().seconds;
  else if (!sample_seconds.empty())
    rest = left * static_cast<double>(samples) * median_of(sample_seconds);
  else
    return Cell::nothing();
  Cell cell = Cell::of(seconds + rest);
  cell.estimated = true;
  return cell;
}

Cell TrainingRun::samples_per_second() const {
  constexpr size_t kLeast = 3;
  std::vector<double> seconds;
  for (size_t i = 1; i < epochs.size(); ++i)
    seconds.push_back(epochs[i].seconds / static_cast<double>(samples));
  if (seconds.size() < kLeast) seconds = sample_seconds;
  if (seconds.empty()) return Cell::nothing();
  const Interval interval = interval_of(seconds);
  const double median = median_of(seconds);
  if (seconds.size() < 2 || !(interval.low > 0)) return Cell::of(1 / median);
  return Cell::of(1 / median, {1 / interval.high, 1 / interval.low});
}

std::optional<double> TrainingRun::last(const std::string& metric) const {
  if (epochs.empty()) return std::nullopt;
  if (metric == "training loss") return epochs.back().loss;
  const auto found = epochs.back().validation.find(metric);
  return found == epochs.back().validation.end() ? std::nullopt : std::optional(found->second);
}

TrainingRun run_training(const TrainingPlan& plan, const std::vector<std::string>& arguments,
                         const std::string& log, const ChildTime& time, const StopRequest& stop) {
  TrainingRun run{.error = {}, .planned_epochs = plan.epochs, .samples = plan.samples};
  const std::string rttrain = tools::find_program("rttrain");
  if (rttrain.empty()) {
    run.error = "rttrain was not found beside rtbench or in PATH";
    return run;
  }
  const int64_t steps = plan.epochs * ((plan.samples + plan.batch - 1) / plan.batch);
  const int64_t every = std::max<int64_t>(1, steps / kRecords);
  std::vector<std::string> own = {rttrain,
                                  plan.model,
                                  "--json",
                                  "--log",
                                  log,
                                  "--log-every",
                                  std::to_string(every),
                                  "--epochs",
                                  std::to_string(plan.epochs),
                                  "--batch",
                                  std::to_string(plan.batch)};
  for (const auto* more : {&plan.data, &plan.options}) own.insert(own.end(), more->begin(), more->end());
  std::vector<std::string> line = plan.launcher;
  const auto add = [&line](const std::vector<std::string>& more) {
    line.insert(line.end(), more.begin(), more.end());
  };
  add(own);
  add(arguments);
  if (!plan.second.empty()) {
    add({":", "-n", "1"});
    add(own);
    add(plan.second);
  }
  std::error_code ignored;
  std::filesystem::remove(log, ignored);  // that of an earlier training
  Child child;
  run.error = child.start(line);
  if (!run.error.empty()) return run;
  const Budget watch(std::nullopt);
  const int code = child.follow(
      time, stop,
      [&](const std::string& text) {
        if (auto epoch = epoch_of(text)) run.epochs.push_back(std::move(*epoch));
      },
      [&log] { return has_step(log); });
  run.messages = child.errors();
  run.cut_short = child.was_ended();
  if (code != tools::kFine && !run.cut_short) run.error = last_error("rttrain", child.errors());
  read_log(log, every, plan.batch, run);
  if (run.cut_short && run.epochs.empty() && run.sample_seconds.empty())
    run.error = stop.requested() ? "interrupted" : "no step was done within " + duration_text(watch.spent());
  return run;
}

}  // namespace librt::bench
