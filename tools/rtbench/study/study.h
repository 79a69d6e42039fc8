// The result of a study, as plain data: what was measured on which device, and what follows from it.
//
// Knows: numbers and words. Must not know: how they are measured (study/engine.h) or written (report/).
//
// Units stand in the names; times are milliseconds of one run, rates are per second. A "sample" is one
// element of the batch. What was not measured is an empty optional with a reason beside it, never 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/machine.h"
#include "tools/rtbench/mode.h"
#include "tools/rtbench/statistics.h"

namespace librt::bench {

/// Joules, where the machine reports them.
struct Energy {
  std::optional<double> joules_per_sample;
  std::optional<double> watts;  ///< average while it ran, idle power included
  std::string source;           ///< "RAPL package (powercap)"; empty: nothing was measured
  std::string reason;           ///< not empty: why nothing was measured
};

/// In the unit of --price. Nothing: no price was given, or it depends on what was not measured (`reason`).
struct Cost {
  std::optional<double> per_million_samples;
  std::optional<double> per_epoch;  ///< with data: of Study::samples_per_epoch samples
  std::string reason;
};

/// A device's limits, measured by kernels of one kind each.
struct Roof {
  bool measured = false;
  double flops_per_second = 0;  ///< fp32 matmul
  double bytes_per_second = 0;  ///< memory
  double launch_seconds = 0;    ///< a run of one tiny node, from call to return
};

struct StudyDevice {
  std::string id;       ///< "cpu:0", "vulkan:1"; unique in the study
  std::string backend;  ///< "cpu"
  int index = 0;
  std::string name;  ///< "AMD EPYC 9554", "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string type;  ///< "CPU", "integrated GPU", "discrete GPU", "virtual GPU", "software GPU"
  std::string driver;
  std::string program;     ///< what runs the model: "librt", or a peer as "onnxruntime 1.16.3"
  bool predicted = false;  ///< no such device was used: every figure is a prediction, intervals its range
  uint64_t memory_bytes = 0;
  int threads = 0;
  Roof roof;
  std::optional<double> idle_watts;
  std::optional<double> price_per_hour;
};

/// One node in one run.
struct NodeTime {
  std::string name, op, kernel, device;
  double milliseconds = 0;
  double flops = 0, bytes = 0;  ///< 0: unknown
  std::optional<double>
      roof_share;     ///< time that the roof needs for it / its time, [0,1] and above if cached
  std::string bound;  ///< which side of the roof: "compute", "memory"; empty: unknown
  /// The plan's memory while the node runs: of values between nodes, and of the node's own scratch.
  uint64_t live_bytes = 0, scratch_bytes = 0;
};

/// The session's memory, by what is in it.
struct MemoryUse {
  uint64_t weights = 0;   ///< constants on the device, as in the file
  uint64_t packed = 0;    ///< constants in the layouts of kernels
  uint64_t states = 0;    ///< parameters, optimizer, statistics
  uint64_t arena = 0;     ///< values between nodes and scratch, as planned
  uint64_t unshared = 0;  ///< the arena if nothing in it shared memory
};

/// Where the time of one run goes, at one batch size. From runs with timed nodes, scaled to the median of
/// those without; the parts add up to total_ms.
struct Profile {
  int64_t batch = 0;
  double total_ms = 0;      ///< Timing::median_ms of the same batch
  double kernels_ms = 0;    ///< nodes that compute
  double transfers_ms = 0;  ///< copies between host and device
  double launches_ms = 0;   ///< submitting, synchronizing, the session's own work: what no node accounts for
  double waiting_ms =
      0;                ///< for data; 0: inputs are in memory (TimeToTarget has the waiting of real training)
  double overhead = 0;  ///< what timing nodes itself cost, as a share of total_ms
  MemoryUse memory;
  std::vector<NodeTime> nodes;  ///< in order of execution
};

/// One batch size.
struct Point {
  int64_t batch = 0;
  Timing timing;
  double samples_per_second = 0;
  Interval samples_interval;           ///< of samples_per_second
  double load_ms = 0;                  ///< mapping and checking the file
  double first_run_ms = 0;             ///< opening the device, planning, choosing kernels, first run
  uint64_t memory_bytes = 0;           ///< the session's: states, weights, packed weights, arena
  uint64_t resident_bytes = 0;         ///< growth of the process's resident memory; 0: unknown
  size_t fallbacks = 0;                ///< nodes that another device runs
  std::optional<double> flops, bytes;  ///< of one run, by the operators' definitions
  std::optional<double> roof_share;    ///< time that the roof needs for these / median, fp32 only
  Energy energy;
  Cost cost;
  std::string error;  ///< not empty: it failed, and only `batch` is valid
};

/// From this batch on, doubling it brings less than 5 % throughput, or cannot be done.
struct Knee {
  int64_t batch = 0;
  double samples_per_second = 0;
  /// False: the sweep ended before throughput flattened; it may grow beyond.
  bool reached = false;
  std::string why;  ///< "throughput grew by 2.1 % from 16 to 32", "no memory for 64", "the budget was spent"
};

/// Difference of outputs from those of fp32, same inputs.
struct Difference {
  double relative = 0;        ///< largest |got - want| / largest |want|, over all float outputs
  std::string compared_with;  ///< "reference", or a device's id
  double allowed = 0;         ///< above this it is an error
};

/// One device x precision x mode.
struct Series {
  size_t device = 0;      ///< index into Study::devices
  std::string precision;  ///< "fp32", "fp16", "bf16", "int8", ...; "as compiled" if the model holds another
  Mode mode = Mode::Infer;
  std::vector<Point> points;             ///< by ascending batch
  std::optional<Difference> difference;  ///< nothing for fp32 on the device that others are compared with
  std::string only_stored;  ///< not empty: the device stores this precision and computes in another: why
  std::optional<Knee> knee;
  std::vector<Profile> profiles;  ///< at batch 1, and at the knee
  std::string not_measured;       ///< not empty: why there are no points
  std::string cut_short;          ///< not empty: why there are fewer than planned (budget, Ctrl-C, an error)
};

/// A point of the study: Study::series[series].points[point].
struct PointRef {
  size_t series = 0, point = 0;
};

/// The batch from which one series overtakes another of the same mode, in samples per second.
struct Crossover {
  enum class Kind : uint8_t {
    Crosses,       ///< `below` is faster up to last_below, `above` from first_above on
    AlwaysFaster,  ///< `below` is faster at every batch measured on both
    TooClose       ///< nowhere do intervals differ
  };
  size_t below = 0, above = 0;  ///< indices into Study::series
  Kind kind = Kind::TooClose;
  int64_t last_below = 0;   ///< largest batch at which `below` is faster with certainty
  int64_t first_above = 0;  ///< smallest batch above it at which `above` is faster with certainty
  double estimate = 0;      ///< where the lines between medians cross, in (last_below, first_above]
  double least_margin = 0;  ///< AlwaysFaster: smallest ratio of medians
  bool resolved = false;    ///< Crosses: no batch between lies open, except where intervals overlap
};

/// The load, in samples per second, from which one device costs less than another, idle time included.
struct LoadCrossover {
  size_t below = 0, above = 0;    ///< indices into Study::series
  double samples_per_second = 0;  ///< `below` is cheaper under it, `above` over it
};

/// Training to a wanted value on one device, with the same seed on all.
struct TimeToTarget {
  size_t device = 0;
  std::string precision;
  std::string metric;  ///< "accuracy"
  double wanted = 0;
  bool reached = false;
  std::optional<double> best;     ///< the best value seen
  std::optional<double> seconds;  ///< until it was reached, or until the training ended; validation included
  std::optional<double> waiting_seconds;     ///< of these, training waited for data
  std::optional<double> samples_per_second;  ///< of the last epoch, data included
  int64_t epochs = 0, steps = 0;
  uint64_t seed = 0;
  Energy energy;
  Cost cost;  ///< per_epoch; the cost of reaching it is in total_cost
  std::optional<double> total_joules, total_cost;
  std::string reason;  ///< not empty: why it was not reached or not tried
};

/// A sentence of the verdict.
struct Sentence {
  enum class About : uint8_t {
    Latency,
    Throughput,
    Batch,
    Crossover,
    Precision,
    Energy,
    Cost,
    Target,
    Caution
  };
  About about = About::Throughput;
  Mode mode = Mode::Infer;
  bool too_close = false;  ///< intervals overlap: it says so
  std::string text;        ///< "cpu:0 is 3.1 times (2.9 to 3.3) as fast as vulkan:0 at batch 1."
};

/// Something that the plan had and that was not measured, or not as planned.
struct Omission {
  std::string what;  ///< "vulkan:0 in bf16, training"
  std::string why;   ///< "the device does not compute in bf16"
};

struct StudiedModel {
  std::string name;    ///< "resnet18"
  std::string source;  ///< as on the command line
  std::string hash;    ///< of the compiled file: FNV-1a, 16 hexadecimal digits
  uint64_t file_bytes = 0;
  std::string batch_symbol;                  ///< empty: the batch is fixed
  std::vector<std::string> inputs, outputs;  ///< "image f32 [batch,224,224,3]"
};

struct Study {
  StudiedModel model;
  std::vector<std::string> arguments;  ///< the command line after `rtbench`
  std::string started;                 ///< UTC, "2025-01-31T12:34:56Z"
  double seconds = 0;                  ///< how long it took
  std::optional<double> budget_seconds;
  bool interrupted = false;  ///< by Ctrl-C: what was measured until then is here
  bool out_of_time = false;  ///< the budget ended the plan early
  Machine machine;
  std::string energy_reason;  ///< not empty: why no energy at all was measured
  std::optional<double> electricity_per_kwh;
  std::optional<int64_t> samples_per_epoch;

  std::vector<StudyDevice> devices;
  std::vector<Series> series;
  std::vector<Crossover> crossovers;
  /// No other point has both a shorter time and a higher throughput; by ascending time.
  std::vector<PointRef> pareto_infer, pareto_train;
  std::vector<LoadCrossover> load_crossovers;
  std::vector<TimeToTarget> targets;
  std::vector<Sentence> verdict;
  std::vector<Omission> omissions;
};

}  // namespace librt::bench
