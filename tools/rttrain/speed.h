// How fast the ranks compute, for --share auto.
//
// Knows: sessions, clocks. Must not know: how a batch is divided (shares.h).
#pragma once

#include <vector>

#include "tools/rttrain/ranks.h"
#include "tools/rttrain/shares.h"
#include "tools/rttrain/source.h"

namespace rt::train {

/// A collective call: samples per second of each rank in forward passes of its part of a batch, all ranks at
/// the same time, as in training. Twice, the second time with the parts that follow from the first, since a
/// device's speed depends on the size of its part. The training step itself cannot be timed so: in it the
/// ranks wait for each other.
rt::Result<std::vector<double>> measure_speeds(rt::Trainer& trainer, const std::vector<Column>& columns,
                                               const Ranks& ranks, size_t batch);

}  // namespace rt::train
