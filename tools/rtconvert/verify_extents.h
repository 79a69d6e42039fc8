// At which extents --verify compares: 1, the smallest at which the model works, random ones, and one beyond
// every number in the model's shape arithmetic, where slices and boxes no longer saturate.
//
// Knows: how to find extents that the model accepts. Must not know: values, files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/graph/graph.h"

namespace rt::convert {

struct ExtentCase {
  std::string at;                  ///< "batch=1, length=17"; empty for a model without open dimensions
  std::vector<TensorInfo> inputs;  ///< of the entry `infer`
};

/// At least one. Cases that would take much work on the reference evaluator are left out, but for one. An
/// error when no extents were found at which the model works.
Result<std::vector<ExtentCase>> extent_cases(const ModelGraph& model, uint64_t seed);

}  // namespace rt::convert
