// How much time a study has, and how much of it is left.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

namespace librt::bench {

/// Seconds of "30s", "5min", "1h", "1.5h", "250ms" or "90" (seconds). Nothing: it is none of these, or not
/// above 0.
std::optional<double> parse_duration(const std::string& text);
/// "12 s", "3 min 12 s", "2 h 03 min".
std::string duration_text(double seconds);
/// "2025-01-31T12:34:56Z".
std::string utc_now();

class Budget {
 public:
  /// seconds: nothing for no limit.
  explicit Budget(std::optional<double> seconds) : limit_(seconds), start_(Clock::now()) {}
  bool limited() const noexcept { return limit_.has_value(); }
  double spent() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// 1e9 without a limit; 0 when it is spent.
  double left() const { return limit_ ? std::max(0.0, *limit_ - spent()) : 1e9; }
  std::optional<double> limit() const noexcept { return limit_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<double> limit_;
  Clock::time_point start_;
};

}  // namespace librt::bench
