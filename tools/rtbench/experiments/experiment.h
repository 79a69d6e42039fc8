// The experiments of articles about CPUs and GPUs, each with one name: `rtbench study NAME`.
//
// An experiment is a file of this folder and a row in experiments.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rtbench/experiments/result.h"
#include "tools/rtbench/study/options.h"
#include "tools/rtbench/study/runner.h"

namespace librt::bench {

class Workplace;

struct ExperimentOptions {
  std::vector<std::string> backends = {"all"};
  std::vector<std::string> precisions;  ///< empty: the experiment's own
  std::vector<Mode> modes;              ///< empty: the experiment's own
  std::string data;                     ///< empty: data that the experiment finds or makes
  std::optional<double> budget_seconds;
  int64_t largest_batch = 4096;
  bool tuning = true;
  int threads = 0;
  uint64_t seed = 0;
  std::vector<std::string> arguments;  ///< the command line
};

struct Experiment {
  std::string_view name;
  std::string_view summary;               ///< what it shows, one line
  std::string_view needs;                 ///< besides a device: "rttrain, rtconvert"
  double seconds;                         ///< its budget, unless --budget gives another
  std::vector<std::string_view> options;  ///< it takes besides those that all take
  void (*run)(Workplace& workplace);
};

std::span<const Experiment> experiments();
/// Null: there is none of this name.
const Experiment* find_experiment(std::string_view name);
/// The table of `rtbench study --list`.
std::string experiments_text();
/// "did you mean 'NAME'?", of an experiment or a zoo's network ("zoo:resnet18") that differs little from this
/// name; empty: none does.
std::string nearest_question(const std::string& name);
/// Options that every experiment takes, without dashes.
std::span<const std::string_view> common_options();

/// Runs it. An error only where it cannot begin: an unknown backend, no temporary folder. After
/// stop.request() it returns soon, with what is measured.
rt::Result<ExperimentResult> run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                                            StopRequest& stop);

}  // namespace librt::bench
