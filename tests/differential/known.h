// Named models whose shapes were once computed wrongly: tested before the random ones.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/differential/draft.h"

namespace librt::test {

std::vector<std::pair<std::string, rt_onnx::ModelProto>> known_models();

}  // namespace librt::test
