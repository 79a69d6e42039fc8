// The verdict of a study in words, with margins; "too close to call" where intervals overlap.
#pragma once

#include <string>
#include <vector>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// In the order in which a reader asks: what to be careful about, then for each mode latency, throughput,
/// batches, crossovers, precisions; then energy, cost, time to the target.
std::vector<Sentence> verdict_of(const Study& study);

/// "cpu:0 in fp16".
std::string side_text(const Study& study, const Series& series);

}  // namespace librt::bench
