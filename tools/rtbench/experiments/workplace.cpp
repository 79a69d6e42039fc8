#include "tools/rtbench/experiments/workplace.h"

#include <algorithm>

#include "tools/cli/exit_code.h"
#include "tools/cli/find_program.h"
#include "tools/rtbench/child.h"
#include "tools/rtbench/devices.h"
#include "tools/rtbench/experiments/time_plan.h"

namespace librt::bench {

Workplace::Workplace(const Experiment& experiment, const ExperimentOptions& options, StopRequest& stop)
    : options_(options),
      stop_(stop),
      budget_(options.budget_seconds.value_or(experiment.seconds)),
      progress_(budget_),
      folder_("rtbench-" + std::string(experiment.name)) {
  result_.name = experiment.name;
  result_.summary = experiment.summary;
  result_.arguments = options.arguments;
  result_.started = utc_now();
  result_.budget_seconds = options.budget_seconds.value_or(experiment.seconds);
}

rt::Status Workplace::open() {
  if (folder_.path().empty())
    return rt::Status(rt::Code::Device,
                      "no temporary folder can be made; set TMPDIR to a folder that can be written");
  const auto all = rt::Devices::list();
  if (!all) return all.status();
  auto chosen = choose_devices(*all, options_.backends);
  if (!chosen) return chosen.status();
  for (const rt::DeviceInfo& device : all->devices)
    if (device.backend == "cpu") cpu_threads_ = std::max(1, device.threads);
  for (rt::DeviceInfo& info : *chosen) {
    const std::string id = info.backend + ":" + std::to_string(info.index);
    result_.devices.push_back({id, info.name, type_text(info.type), info.driver});
    devices_.push_back({std::move(info), id});
  }
  describe_absent(*all);
  return {};
}

// With --backend all, what is not there is part of the result: an article's comparison needs it.
void Workplace::describe_absent(const rt::Devices& devices) {
  if (std::find(options_.backends.begin(), options_.backends.end(), "all") == options_.backends.end()) return;
  for (const auto& backend : devices.backends) {
    if (backend.name == "reference" || backend.name == "cpu") continue;
    const bool chosen = std::any_of(devices_.begin(), devices_.end(), [&](const WorkDevice& device) {
      return device.info.backend == backend.name;
    });
    if (chosen) continue;
    const auto software =
        std::find_if(devices.devices.begin(), devices.devices.end(),
                     [&](const rt::DeviceInfo& device) { return device.backend == backend.name; });
    const std::string name = backend.name == "cuda"     ? "CUDA"
                             : backend.name == "vulkan" ? "Vulkan"
                                                        : backend.name;
    if (software != devices.devices.end())
      omit("no " + name + " GPU",
           software->name + " is a software device, measured with --backend " + backend.name + " only");
    else
      omit("no " + name + " device", backend.reason.empty() ? "none was found" : backend.reason);
  }
}

ExperimentResult Workplace::finish() {
  progress_.clear();
  std::vector<rt::DeviceInfo> infos;
  for (const WorkDevice& device : devices_) infos.push_back(device.info);
  result_.machine = watch_.state(versions_of(infos));
  result_.interrupted = stop_.requested();
  result_.out_of_time |= budget_.left() <= 0;
  result_.seconds = budget_.spent();
  return std::move(result_);
}

const WorkDevice* Workplace::cpu() const {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [](const WorkDevice& device) { return device.info.backend == "cpu"; });
  return found == devices_.end() ? nullptr : &*found;
}

std::vector<const WorkDevice*> Workplace::gpus() const {
  std::vector<const WorkDevice*> found;
  for (const WorkDevice& device : devices_)
    if (device.is_gpu()) found.push_back(&device);
  return found;
}

int Workplace::threads() const {
  return options_.threads > 0 ? options_.threads : cpu_threads_;
}

MeasureOptions Workplace::measure_options() const {
  MeasureOptions options;
  options.threads = options_.threads;
  options.tuning = options_.tuning;
  return options;
}

bool Workplace::is_over() const {
  return stop_.requested() || budget_.left() <= 0;
}

void Workplace::omit_rest(const std::string& what) {
  omit(what, stop_.requested() ? "interrupted" : "the budget was spent");
}

double Workplace::share(size_t parts) const {
  return budget_.left() / static_cast<double>(std::max<size_t>(parts, 1));
}

ChildTime Workplace::child_time(double seconds) const {
  return bench::child_time(seconds, budget_.left(), has_trained_);
}

bool Workplace::compile(const std::string& network, const std::vector<std::string>& options,
                        const std::string& output, std::string& problem, std::string* report) {
  const std::string rtconvert = tools::find_program("rtconvert");
  if (rtconvert.empty()) {
    problem = "rtconvert was not found beside rtbench or in PATH";
    return false;
  }
  std::vector<std::string> line = {rtconvert, network, "-o", output};
  line.insert(line.end(), options.begin(), options.end());
  if (report != nullptr) line.emplace_back("--json");
  Child child;
  problem = child.start(line);
  if (!problem.empty()) return false;
  const double left = budget_.left();
  const ChildTime time = {.seconds = left, .without_result = left, .grace = grace_of(0)};
  const int code = child.follow(time, stop_, [&](const std::string& text) {
    if (report != nullptr) *report += text + "\n";
  });
  if (code == tools::kFine) return true;
  problem = stop_.requested()   ? "interrupted"
            : child.was_ended() ? "the budget was spent while " + network + " was compiled"
                                : last_error("rtconvert", child.errors());
  return false;
}

std::optional<TrainingRun> Workplace::try_train(const std::string& what, const TrainingPlan& plan,
                                                const WorkDevice& device, double seconds) {
  if (is_over()) {
    omit_rest(what);
    return std::nullopt;
  }
  progress_.step(what);
  TrainingRun run = train(plan, device, seconds);
  if (run.error.empty()) return run;
  omit(what, run.error);
  return std::nullopt;
}

TrainingRun Workplace::train(const TrainingPlan& plan, const WorkDevice& device, double seconds) {
  std::vector<std::string> arguments = {"--backend", device.info.backend,
                                        "--device",  std::to_string(device.info.index),
                                        "--seed",    std::to_string(options_.seed)};
  if (options_.threads > 0)
    arguments.insert(arguments.end(), {"--threads", std::to_string(options_.threads)});
  return train(plan, arguments, file("training.log"), seconds);
}

TrainingRun Workplace::train(const TrainingPlan& plan, const std::vector<std::string>& arguments,
                             const std::string& log, double seconds) {
  TrainingRun run = run_training(plan, arguments, log, child_time(seconds), stop_);
  has_trained_ |= run.error.empty();
  result_.out_of_time |= run.cut_short && !stop_.requested();
  return run;
}

}  // namespace librt::bench
