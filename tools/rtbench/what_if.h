// What a model would take on devices that are described, not used.
//
// Knows: the cost model, descriptions of devices, prices. Must not know: sessions, the command line.
// Everything here is a prediction and carries a range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/catalogue.h"
#include "tools/rtbench/price.h"
#include "tools/rtbench/workload.h"

namespace librt::bench {

/// A device to predict for: a described one, or one of this machine with a measured profile.
struct Candidate {
  std::string name;   ///< "l4", "cpu:0"
  std::string title;  ///< "NVIDIA L4"
  std::string basis;  ///< "data sheet", "measured profile"
  std::vector<std::string> assumed;
  DeviceProfile profile;  ///< of the precision asked for
  bool host_memory = false;
  std::optional<double> memory_bytes, watts, idle_watts, price_per_hour;
  /// Rates may be this much higher or lower, and fixed costs lower or higher.
  double optimism = 1, pessimism = 1;
  std::string problem;  ///< not empty: it cannot be predicted, and why
};

/// precision: "" or one of precisions(). A precision whose peak the description lacks is a problem of the
/// candidate.
Candidate candidate_of(const DeviceDescription& device, const std::string& precision);
/// With a profile of --measure-devices; its errors are those of docs/measurements.md.
Candidate candidate_of(const std::string& name, const std::string& title, const DeviceProfile& profile,
                       bool host_memory, uint64_t memory_bytes);

struct PredictedNode {
  std::string name, op, family;
  double milliseconds = 0, flops = 0, bytes = 0;
};

struct PredictedPoint {
  int64_t batch = 0;
  double milliseconds = 0, least_ms = 0, most_ms = 0;  ///< of a run, and its range
  double samples_per_second = 0;
  /// Shares of the time: work of nodes, fixed costs of nodes and of the run, transfers.
  double work_share = 0, fixed_share = 0, transfer_share = 0;
  double memory_bytes = 0;  ///< weights and intermediate values, at least
  std::optional<double> joules_per_sample, cost_per_million;
};

struct PredictedDevice {
  Candidate device;
  std::vector<PredictedPoint> points;  ///< by ascending batch
  int64_t knee = 0;                    ///< 0: the batch is fixed
  std::string knee_reason;             ///< "throughput grows by 3.1 % to batch 64"
  std::vector<PredictedNode> slowest;  ///< at the first batch, at most five
};

struct PredictedCrossover {
  size_t below = 0, above = 0;  ///< indices of devices
  int64_t batch = 0;            ///< from which `above` has the higher predicted throughput; 0: never
  bool certain = false;         ///< ranges of the two do not overlap at the ends of the sweep
};

struct Prediction {
  std::string model, precision;
  std::vector<PredictedDevice> devices;
  std::vector<PredictedCrossover> crossovers;
  std::vector<LoadRange> loads;  ///< cheapest by load, where all devices have prices; indices of devices
};

struct WhatIfOptions {
  std::vector<int64_t> batches;            ///< to show; others are predicted up to the knee
  std::map<std::string, int64_t> extents;  ///< of symbols other than the batch
  std::optional<Prices> prices;
  std::optional<double> electricity_per_kwh;
};

/// Nothing: `error` says why the model cannot be predicted, for example because shapes depend on data.
std::optional<Prediction> what_if(const BenchModel& model, std::vector<Candidate> candidates,
                                  const WhatIfOptions& options, std::string& error);

/// Tables and sentences; says in the first line that nothing was measured.
std::string what_if_text(const Prediction& prediction);
/// An object with "predicted": true.
std::string what_if_json(const Prediction& prediction);

}  // namespace librt::bench
