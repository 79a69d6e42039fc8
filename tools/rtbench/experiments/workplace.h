// What an experiment works with: its devices, its time, a folder for files, and its result.
//
// Knows: devices, the budget, the programs rtconvert and rttrain. Must not know: any experiment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/process.h"
#include "tools/rtbench/experiments/experiment.h"
#include "tools/rtbench/experiments/training.h"
#include "tools/rtbench/models.h"
#include "tools/rtbench/study/budget.h"
#include "tools/rtbench/study/progress.h"

namespace librt::bench {

struct WorkDevice {
  rt::DeviceInfo info;
  std::string id;  ///< "cpu:0"
  bool is_gpu() const noexcept { return info.type != RT_CPU; }
};

class Workplace {
 public:
  Workplace(const Experiment& experiment, const ExperimentOptions& options, StopRequest& stop);
  /// Finds the devices and makes the folder; devices that are absent become omissions.
  rt::Status open();
  /// The result, when the experiment has ended.
  ExperimentResult finish();

  const ExperimentOptions& options() const noexcept { return options_; }
  const std::vector<WorkDevice>& devices() const noexcept { return devices_; }
  const WorkDevice* cpu() const;  ///< null: not chosen
  std::vector<const WorkDevice*> gpus() const;
  StopRequest& stop() noexcept { return stop_; }
  const Budget& budget() const noexcept { return budget_; }
  Progress& progress() noexcept { return progress_; }
  ExperimentResult& result() noexcept { return result_; }
  /// Threads that the CPU's sessions use.
  int threads() const;
  MeasureOptions measure_options() const;

  /// Ctrl-C, or no time left: the rest is left out. The caller need not say so, finish() does.
  bool is_over() const;
  /// Seconds for one of `parts` equal parts of the work that is left.
  double share(size_t parts) const;
  /// For a child that is given so many seconds.
  ChildTime child_time(double seconds) const;
  /// A file in the folder.
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  void omit(const std::string& what, const std::string& why) { result_.omissions.push_back({what, why}); }

  /// For what is left out because is_over().
  void omit_rest(const std::string& what);

  /// Compiles a network of the zoo with rtconvert, as a user would; false: `problem` says why not.
  /// report: its --json, null: not wanted.
  bool compile(const std::string& network, const std::vector<std::string>& options, const std::string& output,
               std::string& problem, std::string* report = nullptr);
  /// Trains with rttrain for at most so many seconds, as the step `what`. Nothing when no time is left, or
  /// when it failed: the result then says why.
  std::optional<TrainingRun> try_train(const std::string& what, const TrainingPlan& plan,
                                       const WorkDevice& device, double seconds);
  /// The same for callers that judge the error, and the time, themselves.
  TrainingRun train(const TrainingPlan& plan, const WorkDevice& device, double seconds);
  /// The same with rttrain's options of the device, and a log, of the caller's.
  TrainingRun train(const TrainingPlan& plan, const std::vector<std::string>& arguments,
                    const std::string& log, double seconds);

 private:
  void describe_absent(const rt::Devices& devices);

  const ExperimentOptions& options_;
  StopRequest& stop_;
  Budget budget_;
  Progress progress_;
  tools::TemporaryFolder folder_;
  std::vector<WorkDevice> devices_;
  int cpu_threads_ = 1;
  bool has_trained_ = false;  ///< a training has had a result
  ExperimentResult result_;
  MachineWatch watch_;
};

}  // namespace librt::bench
