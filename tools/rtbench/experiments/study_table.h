// A study of a model as a part of an experiment.
//
// Knows: the engine of studies and its result. Must not know: any experiment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Studies a model on the workplace's devices in what is left of its time. What the study has omitted is
/// omitted here. Nothing: it could not begin, and the reason is an omission.
std::optional<Study> study_of(Workplace& workplace, const std::string& model,
                              const std::vector<std::string>& precisions, const std::vector<Mode>& modes,
                              int64_t largest_batch);

/// A row for each point.
Table points_of(const Study& study);

}  // namespace librt::bench
