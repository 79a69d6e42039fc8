// Learning rate schedules: from the step index to a factor of the base rate.
//
// Knows: the formulas and their command-line syntax. Must not know: trainers, optimizers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace librt::tools {

/// A pure function of the step; stateless and freely copyable.
///
/// Written as KIND[,NAME=NUMBER...]:
///   constant
///   step,every=N[,gamma=0.1]        times gamma after every N steps
///   linear[,steps=N][,end=0]        a straight line from 1 to `end` at step N, then `end`
///   cosine[,steps=N][,end=0]        half a cosine from 1 to `end` (Loshchilov & Hutter 2017, no restarts)
///   one_cycle[,steps=N][,rise=0.3][,start=0.04][,end=0.0001]
///                                   half a cosine from `start` up to 1 over the share `rise` of the steps,
///                                   and down to `end` (Smith & Topin 2018)
/// Every kind but one_cycle takes warmup=N: a straight line from 1 / N at the first step to 1 at the N-th;
/// the schedule's own steps count from there, and `steps` includes the warm-up.
class Schedule {
 public:
  /// nullopt with a message that names the invalid part and what is expected there.
  static std::optional<Schedule> parse(std::string_view text, std::string& error);

  /// Sets `steps` where the text does not: the length of the training. The error if the warm-up is not
  /// shorter; else empty. Call it before factor().
  std::string set_length(uint64_t steps);
  /// The factor for step 0, 1, ... In [0, 1] as long as `end`, `gamma` and `start` are.
  double factor(uint64_t step) const noexcept;
  /// The base rate times the factor.
  double learning_rate(double base, uint64_t step) const noexcept { return base * factor(step); }
  /// In a form that can be parsed again.
  const std::string& text() const noexcept { return text_; }

 private:
  enum class Kind : uint8_t { Constant, Step, Linear, Cosine, OneCycle };
  friend struct ScheduleParser;

  Kind kind_ = Kind::Constant;
  double steps_ = 0, warmup_ = 0, every_ = 0, gamma_ = 0.1, end_ = 0, start_ = 0.04, rise_ = 0.3;
  std::string text_ = "constant";
};

}  // namespace librt::tools
