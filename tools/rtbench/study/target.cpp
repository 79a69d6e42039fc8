#include "tools/rtbench/study/target.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/cli/exit_code.h"
#include "tools/cli/find_program.h"
#include "tools/cli/process.h"
#include "tools/data/file.h"

namespace librt::bench {
namespace {

constexpr int kPollMs = 100;

// A training in a process of its own, its stdout and stderr through a pipe each.
class Training {
 public:
  ~Training() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      wait();
    }
  }
  std::string start(const std::vector<std::string>& arguments);
  // Lines until it ends; after `seconds`, or once `stop` is requested, it is asked to end.
  template <class OnLine>
  int follow(double seconds, const Budget& budget, const StopRequest& stop, OnLine on_line);
  const std::string& errors() const { return errors_; }
  bool was_ended() const { return asked_; }

 private:
  int wait();
  // Appends what can be read; false at the end.
  static bool read_some(const tools::Descriptor& pipe, std::string& text);

  pid_t child_ = -1;
  tools::Descriptor output_, error_;
  std::string errors_;
  bool asked_ = false;
};

std::string Training::start(const std::vector<std::string>& arguments) {
  int output[2], error[2];
  if (pipe2(output, O_CLOEXEC) != 0) return std::string("no pipe: ") + std::strerror(errno);
  output_ = tools::Descriptor(output[0]);
  const tools::Descriptor output_end(output[1]);
  if (pipe2(error, O_CLOEXEC) != 0) return std::string("no pipe: ") + std::strerror(errno);
  error_ = tools::Descriptor(error[0]);
  const tools::Descriptor error_end(error[1]);
  const int failed =
      tools::start_process(child_, arguments, {.output = output_end.number(), .error = error_end.number()});
  if (failed == 0) return {};
  child_ = -1;
  return arguments[0] + ": " + std::strerror(failed);
}

bool Training::read_some(const tools::Descriptor& pipe, std::string& text) {
  char part[4096];
  const ssize_t got = read(pipe.number(), part, sizeof part);
  if (got > 0) text.append(part, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

int Training::wait() {
  return tools::wait_for_process(std::exchange(child_, -1), tools::kBadMachine);
}

template <class OnLine>
int Training::follow(double seconds, const Budget& budget, const StopRequest& stop, OnLine on_line) {
  const double end = budget.spent() + seconds;
  std::string text;
  bool output_open = true, error_open = true;
  while (output_open || error_open) {
    if (!asked_ && (stop.requested() || budget.spent() >= end)) {
      asked_ = true;
      kill(child_, SIGTERM);  // rttrain ends after its step
    }
    pollfd files[2] = {{output_open ? output_.number() : -1, POLLIN, 0},
                       {error_open ? error_.number() : -1, POLLIN, 0}};
    if (poll(files, 2, kPollMs) < 0 && errno != EINTR) break;
    if (files[0].revents != 0) output_open = read_some(output_, text);
    if (files[1].revents != 0) error_open = read_some(error_, errors_);
    for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n')) {
      on_line(text.substr(0, at));
      text.erase(0, at + 1);
    }
  }
  return wait();
}

// The last line that rttrain printed about an error.
std::string last_error(const std::string& errors) {
  std::string last;
  for (size_t at = 0; at < errors.size();) {
    const size_t end = std::min(errors.find('\n', at), errors.size());
    if (const std::string line = errors.substr(at, end - at); line.starts_with("rttrain: "))
      last = line.substr(9);
    at = end + 1;
  }
  return last.empty() ? "rttrain failed without a message" : last;
}

// A model in memory is a file descriptor of this process, which has another name in a child.
std::string path_for_child(const std::string& path) {
  constexpr std::string_view kOwn = "/proc/self/";
  if (!path.starts_with(kOwn)) return path;
  return "/proc/" + std::to_string(getpid()) + "/" + path.substr(kOwn.size());
}

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
  Training training;
  result.reason = training.start(std::move(arguments));
  if (!result.reason.empty()) return result;
  double waited = 0;
  int64_t samples = 0;
  const int code = training.follow(seconds, context.budget, context.stop, [&](const std::string& line) {
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
    result.reason = last_error(training.errors());
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
