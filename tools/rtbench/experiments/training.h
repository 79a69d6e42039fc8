// A training by rttrain, as an experiment follows it.
//
// Knows: rttrain's command line, its --json and --log. Must not know: any experiment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/child.h"
#include "tools/rtbench/experiments/result.h"

namespace librt::bench {

struct TrainingPlan {
  std::string model;              ///< a .rt file
  std::vector<std::string> data;  ///< options for rttrain about data
  int64_t samples = 0;            ///< of an epoch
  int64_t batch = 32, epochs = 1;
  std::vector<std::string> options;        ///< others
  std::vector<std::string> launcher = {};  ///< "mpirun", "-n", "2": before rttrain
  /// Another rank that mpirun starts beside: the options of its device, instead of `arguments`.
  std::vector<std::string> second = {};
};

struct TrainingEpoch {
  double seconds = 0, waited_seconds = 0;  ///< without validation
  double loss = 0;                         ///< mean over its samples
  std::map<std::string, double> validation;
};

struct TrainingRun {
  std::string error;       ///< not empty: why there is nothing
  bool cut_short = false;  ///< it was ended before its last epoch
  int64_t planned_epochs = 0, samples = 0;
  std::vector<TrainingEpoch> epochs;   ///< complete ones
  std::vector<double> sample_seconds;  ///< of every record of the log: seconds for one sample
  double waited_share = 0;             ///< of the records' time, spent waiting for data
  std::string messages;                ///< its stderr

  bool is_complete() const noexcept { return error.empty() && !cut_short; }
  /// Of all planned epochs, without validation: measured, or extrapolated from the records and then so
  /// marked. Nothing where not even one record was written.
  Cell total_seconds() const;
  /// Samples in a second: the median of epochs but the first, which chooses kernels; of records where there
  /// are too few epochs.
  Cell samples_per_second() const;
  /// "validation_" is left out: "accuracy", "loss". Of the last epoch.
  std::optional<double> last(const std::string& metric) const;
};

/// arguments: of the device and what all trainings have in common. `log`: a file that may be written.
TrainingRun run_training(const TrainingPlan& plan, const std::vector<std::string>& arguments,
                         const std::string& log, const ChildTime& time, const StopRequest& stop);

}  // namespace librt::bench
