// Two studies of one model: what changed, and whether it is more than chance.
//
// Knows: points with intervals. Must not know: files, measuring.
//
// The test. The ratio of two medians has an interval: that of its logarithm, from the intervals of both
// medians added in quadrature, and for each of the two processes kProcessHalfWidth to either side: they
// differ in more than the interval of one shows (placement in memory, which core). A series is judged as a
// whole by the geometric mean over its batch sizes, and each of its points by itself. Something is slower
// only if the whole interval lies beyond the tolerance, at 95 % for all judgements together (Bonferroni): two
// studies of the same build are then told apart by chance in at most one of twenty pairs.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

inline constexpr double kProcessHalfWidth = 0.01;

enum class Change : uint8_t {
  Same,    ///< the interval does not lie beyond the tolerance on either side
  Faster,  ///< by more than the tolerance
  Slower   ///< by more than the tolerance: a regression
};

/// Time of a run, new / old.
struct TimeChange {
  double ratio = 1;
  Interval interval;  ///< at 95 % for this one alone
  Change change = Change::Same;
};

struct PointChange {
  int64_t batch = 0;
  double old_ms = 0, new_ms = 0;
  TimeChange time;
  uint64_t old_bytes = 0, new_bytes = 0;         ///< memory of the session
  std::optional<double> old_joules, new_joules;  ///< of a sample
};

struct SeriesChange {
  std::string name;  ///< "cpu:0 fp32, inference"
  TimeChange time;   ///< geometric mean over the points
  std::vector<PointChange> points;
  int64_t old_knee = 0, new_knee = 0;  ///< 0: none
};

struct Comparison {
  std::vector<SeriesChange> series;
  /// What makes the figures hard to compare: another machine, other versions, a noisy machine.
  std::vector<std::string> cautions;
  /// Devices, precisions and batch sizes that only one of the studies has.
  std::vector<std::string> only_old, only_new;
  /// Beside times: what failed, is missing an error bound or did not reach a target, and did not before.
  std::vector<std::string> failures;
  /// At least one Slower, or a failure.
  bool regressed = false;
};

/// tolerance: a share, 0.05 for 5 %. Code::InvalidArgument if the studies are of different models or have no
/// point in common.
Result<Comparison> compare_studies(const Study& before, const Study& after, double tolerance);

/// For a terminal.
std::string comparison_text(const Comparison& comparison, double tolerance);
std::string comparison_json(const Comparison& comparison, double tolerance);

}  // namespace librt::bench
