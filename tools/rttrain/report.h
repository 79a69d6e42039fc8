// What a run prints and logs while it trains, and its summary at the end.
//
// Knows: stdout (results), stderr (everything else), the log. Must not know: sessions, when to stop.
#pragma once

#include <chrono>
#include <vector>

#include "tools/rttrain/log.h"
#include "tools/rttrain/loop_options.h"
#include "tools/rttrain/position.h"
#include "tools/rttrain/progress.h"

namespace rt::train {

/// Seconds from its construction on.
class StopWatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Report {
 public:
  /// Other than the first rank, nothing is printed. batches, total_steps: of an epoch, of the run.
  Report(RunLog& log, bool is_first, uint64_t batches, uint64_t total_steps, const LoopOptions& options)
      : log_(log),
        is_first_(is_first),
        batches_(batches),
        total_steps_(total_steps),
        options_(options),
        progress_(options.progress) {}

  /// waited: seconds that training has waited for data, since the beginning.
  void start_epoch(const Position& position, double waited);
  /// After each step, which `position` includes.
  rt::Status step(const Position& position, double loss, size_t samples, double rate, double waited);
  void end_steps() const { progress_.clear(); }
  /// Of the epoch in progress, without validation.
  EpochRecord record(const Position& position, double waited) const;
  rt::Status epoch(EpochRecord record);
  /// The table of this run's epochs and the total time. best: the best epoch's text, or empty.
  void summary(const std::string& monitor, const Position& position, const std::string& best,
               const std::string& reason) const;

 private:
  rt::Status log_step(const Position& position, double waited);
  std::string progress_text(const Position& position, double elapsed, double waited) const;

  /// The steps since the last record of the log.
  struct Interval {
    StopWatch watch;
    double waited = 0, loss = 0;
    uint64_t samples = 0, steps = 0;
  };

  RunLog& log_;
  const bool is_first_;
  const uint64_t batches_, total_steps_;
  const LoopOptions& options_;
  ProgressLine progress_;
  StopWatch run_, epoch_;
  double epoch_waited_ = 0;  ///< before the epoch
  uint64_t epoch_seen_ = 0;  ///< before this run, of an epoch that is continued
  Interval interval_;
  double rate_ = 0;     ///< of the last step
  uint64_t steps_ = 0;  ///< of this run
  std::vector<EpochRecord> epochs_;
};

}  // namespace rt::train
