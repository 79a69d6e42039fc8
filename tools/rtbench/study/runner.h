// One model on one device in one session, run again and again at one batch size after the other.
//
// Knows: sessions, clocks. Must not know: the plan of a study, statistics.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
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

/// Runs one model again and again at one batch size after the other: a session here, another engine in
/// peer/peer_runner.h.
class Runner {
 public:
  virtual ~Runner() = default;

  /// Seeded inputs for this batch, the first run, planning included, and one more. With `outputs`, those of
  /// the first.
  virtual rt::Status set_batch(int64_t batch, Outputs* outputs) = 0;
  /// Runs for about that many seconds, at least `least` times; appends the milliseconds of each. Runs shorter
  /// than a tenth of a second are preceded by two that do not count.
  virtual rt::Status run(double seconds, size_t least, std::vector<double>& times) = 0;
  /// Of the current batch's plan; 0: unknown.
  virtual uint64_t memory_bytes() const { return 0; }
  /// Of the current batch; empty: there is none.
  virtual std::string plan_text() { return {}; }
  /// Nodes that another device runs.
  virtual size_t fallbacks() const { return 0; }

  size_t runs_done() const noexcept { return runs_done_; }  ///< warm-up included
  int64_t batch() const noexcept { return batch_; }
  double load_ms() const noexcept { return load_ms_; }
  double last_ms() const noexcept { return last_ms_; }            ///< of the last run
  double first_run_ms() const noexcept { return first_run_ms_; }  ///< of set_batch(), opening included once
  const std::string& only_stored() const noexcept { return only_stored_; }
  uint64_t resident_bytes() const noexcept { return resident_; }  ///< growth since open(); 0: unknown

 protected:
  int64_t batch_ = 0;
  size_t runs_done_ = 0;
  double load_ms_ = 0, first_run_ms_ = 0, last_ms_ = 0;
  uint64_t resident_ = 0;
  std::string only_stored_;
};

class SessionRunner final : public Runner {
 public:
  /// Opens the device and prepares the entry. A device that does not compute in a requested 16-bit type
  /// stores in it and computes in another: only_stored() has the reason.
  static rt::Result<std::unique_ptr<SessionRunner>> open(const BenchModel& model,
                                                         const rt::DeviceInfo& device,
                                                         const MeasureOptions& options, StopRequest& stop);

  rt::Status set_batch(int64_t batch, Outputs* outputs) override;
  rt::Status run(double seconds, size_t least, std::vector<double>& times) override;
  uint64_t memory_bytes() const override;
  std::string plan_text() override;
  size_t fallbacks() const override { return session_.fallback_count(); }
  rt::Session& session() noexcept { return session_; }

 private:
  SessionRunner(BenchModel model, rt::DeviceInfo device, MeasureOptions options, StopRequest& stop,
                rt::Model loaded, rt::Session session)
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
  double open_ms_ = 0;
  uint64_t resident_before_ = 0;
};

}  // namespace librt::bench
