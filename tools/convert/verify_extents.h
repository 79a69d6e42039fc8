// Extents at which --verify compares: 1, the smallest that the model accepts, random ones, and one above
// every constant in the model's shape arithmetic, where slices and boxes no longer saturate.
//
// Knows: how to find extents that the model accepts. Must not know: values, files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/graph/graph.h"

namespace librt::convert {

struct ExtentCase {
  std::string at;                  ///< "batch=1, length=17"; empty for a model without dynamic dimensions
  std::vector<TensorInfo> inputs;  ///< of the entry `infer`
};

/// At least one case. Cases too expensive for the reference evaluator are skipped, except the first. An error
/// when no extents were found that the model accepts.
Result<std::vector<ExtentCase>> extent_cases(const ModelGraph& model, uint64_t seed);

}  // namespace librt::convert
