#include "runtime/core/stop_signal.h"

#include <algorithm>
#include <chrono>

namespace librt {

namespace {
int64_t now() noexcept {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}
}  // namespace

void StopSignal::begin(uint64_t time_limit_ms, uint64_t iterations) noexcept {
  iterations_ = 0;
  most_iterations_ = iterations > 0 ? iterations : kMostIterations;
  time_limit_ms_ = time_limit_ms;
  if (time_limit_ms == 0) {
    if ((flags_.load(std::memory_order_relaxed) & kTimed) != 0)
      flags_.fetch_and(~kTimed, std::memory_order_relaxed);
    return;
  }
  constexpr int64_t kPerMs = 1'000'000, kMostMs = int64_t{1} << 42;  // 139 years: the sum stays inside int64
  deadline_ = now() + static_cast<int64_t>(std::min<uint64_t>(time_limit_ms, kMostMs)) * kPerMs;
  flags_.fetch_or(kTimed, std::memory_order_relaxed);
}

void StopSignal::end(const Status& status) noexcept {
  if (flags_.load(std::memory_order_relaxed) == 0) return;
  flags_.fetch_and(status.code() == Code::Cancelled ? 0u : ~kTimed, std::memory_order_relaxed);
}

Status Progress::report(rt_stage stage, size_t done, size_t total) const noexcept {
  if (callback == nullptr) return {};
  const double fraction = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
  if (callback(user, stage, fraction) == 0) return {};
  return Status(Code::Cancelled, "the progress callback stopped it; call it again to go on");
}

Status StopSignal::report(rt_stage stage, size_t done, size_t total) const noexcept {
  RT_TRY(check());
  return progress.report(stage, done, total);
}

Status StopSignal::next_iteration() noexcept {
  if (iterations_ == most_iterations_)
    return Status::make(Code::LimitExceeded, "the loops of this run have taken ", most_iterations_,
                        " iterations together and do not end; let their conditions become false, or allow "
                        "more iterations (loop_limit)");
  ++iterations_;
  return check();
}

Status StopSignal::reason() const noexcept {
  const uint32_t flags = flags_.load(std::memory_order_relaxed);
  if ((flags & kRequested) != 0)
    return Status(Code::Cancelled, "the run was cancelled; states are as before it, run again to repeat it");
  // Not timed: the request that check() saw was withdrawn since.
  if ((flags & kTimed) == 0 || now() < deadline_) return {};
  return Status::make(Code::LimitExceeded, "the run has taken longer than its time limit of ", time_limit_ms_,
                      " ms; states are as before it, allow more time (time_limit_ms) or give it less to do");
}

}  // namespace librt
