// Minimizes a model that shows a fault.
#pragma once

#include <functional>

#include "tests/differential/draft.h"

namespace librt::test {

/// The smallest model found for which still_wrong is true, by keeping one output, bypassing nodes and
/// dropping unread ones. Tries at most `tries` models.
rt_onnx::ModelProto minimize(const rt_onnx::ModelProto& model,
                             const std::function<bool(const rt_onnx::ModelProto&)>& still_wrong, int tries);

}  // namespace librt::test
