// A study: measures a model on every device in every precision, and draws conclusions.
//
// Knows: the order of the plan, and how it fits into a budget. Must not know: the command line, formats of
// output.
#pragma once

#include "rt/rt.hpp"
#include "tools/rtbench/study/options.h"
#include "tools/rtbench/study/runner.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Runs the plan: first points of all series, sweeps over doubled batches, batches around crossovers, times
/// of nodes, times to the target; then the verdict. An error only where nothing at all can be measured: a bad
/// model, device or precision. What fails on the way is in the study. After stop.request() it returns soon,
/// with what is measured.
rt::Result<Study> run_study(const StudyOptions& options, StopRequest& stop);

}  // namespace librt::bench
