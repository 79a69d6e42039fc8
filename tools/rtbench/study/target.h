// Time to a target: trains with rttrain on each device, with the same seed, until a metric reaches a value.
//
// Knows: rttrain's command line and its --json output. Must not know: sessions.
#pragma once

#include <string>
#include <vector>

#include "tools/rtbench/study/lanes.h"

namespace librt::bench {

/// What a line of `rttrain --json` says, waiting_seconds of this epoch alone, and its number of samples;
/// false if it is no such line.
bool read_epoch(const std::string& line, const std::string& metric, TimeToTarget& result, int64_t& samples);

/// Runs rttrain for each device with a training lane in fp32, or in every precision if they were asked for by
/// name, and appends to Study::targets. Nothing without --data.
void measure_targets(LaneContext& context, const std::vector<Lane>& lanes);

}  // namespace librt::bench
