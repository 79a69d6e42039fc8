// Costs of a study's points, from prices by the hour and electricity.
//
// Knows: price.h. Must not know: how anything was measured.
#pragma once

#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Fills the cost of every point and target, and the loads from which one device is cheaper than another,
/// from StudyDevice::price_per_hour, Study::electricity_per_kwh and measured power. Without both it does
/// nothing.
void add_costs(Study& study);

}  // namespace librt::bench
