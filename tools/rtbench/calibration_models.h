// Small graphs that time one family of nodes each, at a few sizes.
//
// Knows: the compiler library, families of the cost model. Must not know: sessions, clocks.
#pragma once

#include <optional>
#include <string>

#include "runtime/session/prepare/cost_model.h"
#include "tools/rtbench/models.h"

namespace librt::bench {

/// How many sizes there are of a family, ascending.
size_t calibration_sizes(Family family);

struct CalibrationModel {
  BenchModel model;
  std::shared_ptr<const ModelGraph> graph;  ///< owns the nodes of `work`
  Workload work;                            ///< some nodes of `family`, and others that join them
};

/// `repeats` nodes of the family in a row, or side by side where they cannot follow each other; 0: as many as
/// make a good measurement at this size. Nodes of one graph are equally large.
std::optional<CalibrationModel> calibration_model(Family family, size_t index, int repeats,
                                                  std::string& error);

}  // namespace librt::bench
