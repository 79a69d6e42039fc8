// How long the parts of an experiment may take, so that its budget is kept on a busy machine as well.
//
// Knows: arithmetic. Must not know: clocks, processes, sessions.
#pragma once

#include <algorithm>

#include "tools/rtbench/child.h"

namespace librt::bench {

/// For a child that has `share` seconds of the `left` ones. As long as no child has had a result, one that
/// has none at the end of its share goes on for as long as the budget lasts: equal shares that are each too
/// short for a step would otherwise measure nothing.
inline ChildTime child_time(double share, double left, bool has_results) noexcept {
  const double seconds = std::clamp(share, 0.0, std::max(0.0, left));
  const double most = has_results ? seconds : std::max(seconds, left);
  return {.seconds = seconds, .without_result = most, .grace = grace_of(seconds)};
}

/// Whether work that took `last` seconds the last time fits into what is left.
inline bool fits(double last, double left) noexcept {
  return left > 0 && last <= left;
}

/// Whether another preparation may begin in a part that has `seconds` and has spent `spent` on preparations,
/// of which the longest took `longest`: they may take twice the part's time, as long as the budget lasts.
inline bool may_prepare(double longest, double spent, double seconds, double left) noexcept {
  return fits(longest, left) && spent + longest <= std::max(2 * seconds, kOverrunSeconds);
}

}  // namespace librt::bench
