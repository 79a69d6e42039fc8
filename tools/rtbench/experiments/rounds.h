// Sessions measured in turn: one batch, rounds of all of them interleaved, so that what disturbs the machine
// for a while disturbs all.
//
// Knows: runners, statistics. Must not know: any experiment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/models.h"

namespace librt::bench {

/// A model on a device.
struct Racer {
  const WorkDevice* device = nullptr;
  BenchModel model;
  MeasureOptions options = {};
  std::unique_ptr<SessionRunner> runner = {};
  std::string error = {};  ///< not empty: it is no longer measured
  Timing timing = {};      ///< of the last race; no runs: it was not measured
  uint64_t memory_bytes = 0;
};

/// Measures them at a batch for about `seconds` altogether, in three rounds where the budget lasts for them,
/// else in one that includes the run after the first. Fills timing, or error. After Ctrl-C the timings have
/// what was measured.
void race(Workplace& workplace, const std::vector<Racer*>& racers, int64_t batch, double seconds);

/// "cpu:0 is 3.1 times (2.9 to 3.3) as fast as cuda:0 at 100 rows.", or that it is too close to call. Both
/// must have a timing.
std::string faster_text(const Racer& a, const Racer& b, const std::string& at);

/// Time of a run, with its interval; nothing if it was not measured.
Cell time_cell(const Timing& timing);
/// `amount` in a run as a rate per second, with its interval.
Cell rate_cell(const Timing& timing, double amount);

}  // namespace librt::bench
