// Where the time of a run goes: nodes, transfers, launches.
//
// Knows: profiles of sessions. Must not know: the plan of a study.
#pragma once

#include <vector>

#include "tools/rtbench/study/lanes.h"

namespace librt::bench {

/// Splits a run of `total_ms`, timed without profiling, by the times of nodes of runs with it. Copies
/// between host and device ("Transfer") are transfers, what no node accounts for is launches.
/// Where nodes take longer together than the run, as timing them costs time too, they are scaled to it.
Profile split_run(int64_t batch, double total_ms, double profiled_ms, std::vector<NodeTime> nodes,
                  const Roof& roof);

/// Profiles every lane's series at its smallest batch and at its knee, in new sessions that time nodes, for
/// at most about that many seconds altogether. What is left out goes to Study::omissions.
void break_down(LaneContext& context, std::vector<Lane>& lanes, double seconds);

}  // namespace librt::bench
