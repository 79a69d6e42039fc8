// Measuring one model on one device.
//
// Knows: sessions, clocks, statistics. Must not know: tables, the command line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rt/rt.hpp"
#include "tools/rtbench/models.h"

namespace librt::bench {

struct MeasureOptions {
  rt::ModelOptions load;
  int threads = 0;
  bool profile = false;
  bool no_replay = false;
  bool tuning = true;
  double seconds = 1.0;  ///< time spent on runs of one configuration, after warm-up
  int least_runs = 5;
  uint64_t time_limit_ms = 0;                 ///< of one run; 0: none
  uint64_t memory_limit = 0;                  ///< of a session, bytes; 0: what the machine has
  int in_flight = 1;                          ///< asynchronous runs in flight; 1 or 2
  std::string adapter;                        ///< file for Session::load_adapter(); empty: none
  std::vector<rt_custom_operator> operators;  ///< of the libraries of --operators
  std::map<std::string, int64_t> dims;        ///< extents of symbols other than the batch
  // For training:
  float learning_rate = 1e-3f;
  std::optional<double> target_loss;  ///< also train from scratch on the batch until the loss is at most this
  double most_seconds = 60;           ///< time limit of that
};

struct OpTime {
  std::string name, op, kernel, device;
  double milliseconds = 0;      ///< of one run
  double flops = 0, bytes = 0;  ///< of one run
};

struct Measurement {
  std::string model, backend, device;
  std::string precision;  ///< requested; empty: the model's own
  /// Not empty: why the device only stores in this precision and computes in another.
  std::string only_stored;
  Mode mode = Mode::Infer;  ///< what one run is: an inference or a training step
  int64_t batch = 1;
  std::string error;  ///< not empty: nothing was measured
  int exit_code = 0;  ///< of the error (tools/cli/exit_code.h)
  int runs = 0;
  int in_flight = 1;  ///< 2: times are from the end of one run to the end of the next
  double median_ms = 0, p90_ms = 0, p99_ms = 0, least_ms = 0;
  double samples_per_second = 0;
  double gflops = 0;           ///< per second, at the median; 0 if unknown
  double percent_of_peak = 0;  ///< 0 if the peak is unknown
  double load_ms = 0;          ///< mapping and checking the file
  double first_run_ms = 0;     ///< opening the device, planning, first run
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;  ///< states, weights, packed weights and arena
  /// Growth of the process's resident memory from before loading to after the runs; 0: unknown.
  uint64_t resident_bytes = 0;
  double error_to_reference = -1;  ///< largest |got - want| / largest |want|; negative: not compared
  std::string compared_with;
  size_t fallbacks = 0;
  // With a target loss: steps until it was reached, 0 when it was not, and their seconds.
  std::optional<int> target_steps;
  double target_seconds = 0;
  std::vector<OpTime> ops;
};

using Outputs = std::vector<rt::Tensor>;

/// The symbol of the batch, the first input's first dimension; empty for a static batch, whose extent is then
/// stored in `fixed`.
std::string batch_symbol(const BenchModel& model, const rt::Model& loaded, int64_t& fixed);

rt::Result<rt::Model> load(const BenchModel& model, const rt::ModelOptions& options);

/// Times runs on a device. outputs, if not null, receives the results of the last run.
Measurement measure(const BenchModel& model, const rt::DeviceInfo& device, int64_t batch,
                    const MeasureOptions& options, Outputs* outputs);

/// Seeded inputs like those of the runs, for int8 calibration.
rt::Result<std::vector<tools::Array>> calibration_rows(const BenchModel& model,
                                                       const MeasureOptions& options);

/// Outputs of one run on a backend.
rt::Result<Outputs> outputs_of(const BenchModel& model, const std::string& backend, int64_t batch,
                               const MeasureOptions& options);
/// Whether an entry of a profile copies between host and device. All others are work of a device, also copies
/// and reorders that a plan inserts within its memory.
inline bool is_transfer(std::string_view op) {
  return op == "Transfer";
}

/// Largest |got - want| over largest |want|, over all float outputs.
double relative_error(const Outputs& got, const Outputs& want);

/// Peak rates of a device: read from the cache folder, or measured (`fresh`: always) and written there.
rt_device_profile device_profile(const rt::DeviceInfo& device, const MeasureOptions& options, bool fresh);

}  // namespace librt::bench
