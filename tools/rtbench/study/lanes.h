// The series of a study while they are measured: their models, open sessions, and what another point would
// cost.
//
// Knows: runners, the budget. Must not know: the order of the plan (engine.h), what follows from points
// (analysis.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/energy.h"
#include "tools/rtbench/study/options.h"
#include "tools/rtbench/study/progress.h"
#include "tools/rtbench/study/runner.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

class Peer;

/// A series of Study::series while it is measured.
struct Lane {
  size_t series = 0;
  rt::DeviceInfo device;
  std::shared_ptr<const BenchModel> model;  ///< in the series' precision
  std::shared_ptr<Peer> peer;               ///< another engine, which runs it instead; null: librt
  std::unique_ptr<Runner> runner;           ///< null: not open
  std::optional<size_t> sensor;             ///< of the device's energy
  std::string no_energy;                    ///< why there is none
  bool ended = false;                       ///< its sweep
  double set_up_seconds = 0;                ///< of a point, without its runs: the last one's
  double first_set_up_seconds = 0;          ///< of the first point: opening the device is part of it
  int points = 0;                           ///< set up so far
  double sample_seconds = 0;                ///< of a run, by sample: the last point's
};

/// What all lanes share.
struct LaneContext {
  const StudyOptions& options;
  const Budget& budget;
  Progress& progress;
  StopRequest& stop;
  Study& study;
  EnergyMeter& meter;
  /// Outputs in fp32 at the first batch, by mode, and where they come from.
  struct Expected {
    Outputs outputs;
    std::string source;
  };
  std::map<Mode, Expected> expected;
};

/// "cpu:0 fp16 train".
std::string name_of(const Study& study, const Series& series);

/// Seconds that another point at this batch takes at least: setting up, a warm-up and two rounds of one run.
double least_seconds(const Lane& lane, int64_t batch);
/// The same for the first point of a series like this one, which also opens the device.
double first_seconds(const Lane& lane, int64_t batch);

/// Measures the lanes at one batch in interleaved rounds of about `seconds` together for each lane, asked for
/// when all are set up, and adds a point to each one's series. A failure becomes the point's error, and
/// closes the session. Stops at Ctrl-C and at the end of the budget, with what was measured until then.
/// compare: outputs of the first run are compared with fp32's.
void measure_points(LaneContext& context, const std::vector<Lane*>& lanes, int64_t batch,
                    const std::function<double()>& seconds, bool compare);

}  // namespace librt::bench
