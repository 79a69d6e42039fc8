// One model on one device in one session, run again and again at one batch size after the other.
//
// Knows: sessions, clocks. Must not know: the plan of a study, statistics.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/measure.h"

namespace librt::bench {

/// Runs shorter than this are warmed up at the beginning of each round: other sessions ran in between.
inline constexpr double kShortRunMs = 100;

/// Ctrl-C: set from a signal handler, together with the cancellation of the run in progress.
class StopRequest {
 public:
  /// Async-signal-safe.
  void request() noexcept;
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  /// Whose run request() cancels; null: none. The session must outlive this.
  void watch(rt_session* session) noexcept { session_.store(session); }

 private:
  std::atomic<bool> requested_{false};
  std::atomic<rt_session*> session_{nullptr};
};

class Runner {
 public:
  /// Opens the device and prepares the entry. A device that does not compute in a requested 16-bit type
  /// stores in it and computes in another: only_stored() has the reason.
  static rt::Result<Runner> open(const BenchModel& model, const rt::DeviceInfo& device,
                                 const MeasureOptions& options, StopRequest& stop);

  /// Seeded inputs for this batch, the first run, planning included, and one more. With `outputs`, those of
  /// the first.
  rt::Status set_batch(int64_t batch, Outputs* outputs);
  /// Runs for about that many seconds, at least `least` times; appends the milliseconds of each. Runs shorter
  /// than a tenth of a second are preceded by two that do not count.
  rt::Status run(double seconds, size_t least, std::vector<double>& times);

  size_t runs_done() const noexcept { return runs_done_; }  ///< warm-up included
  int64_t batch() const noexcept { return batch_; }
  double load_ms() const noexcept { return load_ms_; }
  double last_ms() const noexcept { return last_ms_; }            ///< of the last run
  double first_run_ms() const noexcept { return first_run_ms_; }  ///< of set_batch(), opening included once
  const std::string& only_stored() const noexcept { return only_stored_; }
  uint64_t resident_bytes() const noexcept { return resident_; }  ///< growth since open(); 0: unknown
  uint64_t memory_bytes() const;                                  ///< of the current batch's plan
  rt::Session& session() noexcept { return session_; }
  const rt::Model& model() const noexcept { return loaded_; }

 private:
  Runner(BenchModel model, rt::DeviceInfo device, MeasureOptions options, StopRequest& stop, rt::Model loaded,
         rt::Session session)
      : model_(std::move(model)),
        device_(std::move(device)),
        options_(std::move(options)),
        stop_(&stop),
        loaded_(std::move(loaded)),
        session_(std::move(session)) {}
  rt::Status run_once();
  rt::Status first_run(int64_t batch);

  BenchModel model_;
  rt::DeviceInfo device_;
  MeasureOptions options_;
  StopRequest* stop_;
  rt::Model loaded_;
  rt::Session session_;
  std::vector<rt::Tensor> inputs_;
  int64_t batch_ = 0;
  size_t runs_done_ = 0;
  double load_ms_ = 0, open_ms_ = 0, first_run_ms_ = 0, last_ms_ = 0;
  uint64_t resident_before_ = 0, resident_ = 0;
  std::string only_stored_;
};

}  // namespace librt::bench
