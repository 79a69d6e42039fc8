// What ends a run early: a request from another thread, a deadline, too many iterations of loops, or the
// application's progress callback.
//
// Knows: flags and a clock. Must not know: what is run. One thread runs and checks; request() and withdraw()
// may be called from any thread and from signal handlers.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/core/status.h"
#include "runtime/include/rt/hooks.h"

namespace librt {

/// Iterations that the loops of a run may take together, unless a session allows more.
inline constexpr uint64_t kMostIterations = 1'000'000;

/// The application's function that hears how far a session is before its run.
struct Progress {
  rt_progress_callback callback = nullptr;
  void* user = nullptr;

  /// `done` of `total` parts of the stage. Code::Cancelled if the application says stop.
  Status report(rt_stage stage, size_t done, size_t total) const noexcept;
};

class StopSignal {
 public:
  /// Limits of the run that begins now. time_limit_ms 0: none; iterations 0: kMostIterations.
  void begin(uint64_t time_limit_ms, uint64_t iterations) noexcept;
  /// The run has ended with this status: a request that it reports is answered.
  void end(const Status& status) noexcept;

  void request() noexcept { flags_.fetch_or(kRequested, std::memory_order_relaxed); }
  void withdraw() noexcept { flags_.fetch_and(~kRequested, std::memory_order_relaxed); }

  /// Code::Cancelled or Code::LimitExceeded if the run should end. One relaxed load unless it is timed or
  /// requested to stop.
  Status check() const noexcept { return flags_.load(std::memory_order_relaxed) == 0 ? Status() : reason(); }
  /// The same, while a plan is built; the application hears of it.
  Status report(rt_stage stage, size_t done, size_t total) const noexcept;
  Progress progress;
  /// The same before an iteration of a loop, which it counts.
  Status next_iteration() noexcept;

 private:
  static constexpr uint32_t kRequested = 1, kTimed = 2;
  Status reason() const noexcept;

  std::atomic<uint32_t> flags_{0};
  int64_t deadline_ = 0;  ///< nanoseconds of the steady clock
  uint64_t time_limit_ms_ = 0;
  uint64_t iterations_ = 0, most_iterations_ = kMostIterations;
};

}  // namespace librt
