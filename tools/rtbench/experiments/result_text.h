// The forms of an experiment's result: text, Markdown, JSON.
#pragma once

#include <string>

#include "tools/rtbench/experiments/result.h"

namespace librt::bench {

inline constexpr int kExperimentSchemaVersion = 1;

std::string experiment_text(const ExperimentResult& result);
std::string experiment_markdown(const ExperimentResult& result);
/// Follows schema/experiment.schema.json.
std::string experiment_json(const ExperimentResult& result);

}  // namespace librt::bench
