// Makes a model that shows a fault smaller.
#pragma once

#include <functional>

#include "tests/differential/draft.h"

namespace rt::test {

/// The smallest model found, by keeping one output, passing by nodes and dropping what nothing reads, of
/// which still_wrong is true. Tries at most `tries` models.
rt_onnx::ModelProto minimize(const rt_onnx::ModelProto& model,
                             const std::function<bool(const rt_onnx::ModelProto&)>& still_wrong, int tries);

}  // namespace rt::test
