// When a training run ends early, and which epoch was the best.
//
// Knows: --target, --patience, --monitor. Must not know: sessions, files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/rttrain/log.h"
#include "tools/rttrain/loop_options.h"
#include "tools/rttrain/position.h"

namespace rt::train {

class StopRule {
 public:
  /// metrics: what the validation measures; empty: there is none, and the rule never stops.
  StopRule(const LoopOptions& options, std::vector<std::string> metrics);

  /// An error if a metric of the options is not measured.
  rt::Status check() const;
  /// The metric that determines the best epoch; empty without validation.
  const std::string& monitor() const noexcept { return monitor_; }
  /// Takes the epoch that `position` has just finished into account; true if it is the best one so far.
  bool judge(const EpochRecord& record, Position& position);
  bool is_reached() const noexcept { return is_reached_; }
  bool is_out_of_patience(const Position& position) const noexcept;
  /// "validation loss 0.251300"; empty if no epoch was judged.
  std::string best_text(const Position& position) const;
  /// Why training ended before its last epoch; empty if it did not.
  std::string reason(const Position& position) const;

 private:
  rt::Status check(const char* option, const std::string& metric) const;

  const LoopOptions& options_;
  std::vector<std::string> metrics_;
  std::string monitor_;
  bool is_reached_ = false;
};

/// The value of a metric; NaN if it was not measured.
double value_of(std::span<const Measured> measured, const std::string& metric) noexcept;

}  // namespace rt::train
