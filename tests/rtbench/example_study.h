// A study with every field in use, for tests of what reads, writes and shows studies.
#pragma once

#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Two devices, three precisions, both modes; energy and cost on one device; a crossover, knees, profiles,
/// targets, a failed point, a series that was not measured. `name` is used as the model's and as a node's.
Study example_study(const std::string& name = "resnet18");

}  // namespace librt::bench
