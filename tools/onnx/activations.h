// Activations fused into another operator, whose node names them.
#pragma once

#include <string_view>
#include <vector>

#include "tools/onnx/node.h"

namespace librt::onnx {

/// The activation with that ONNX name; numbers: its attributes in the order that ONNX documents them. An
/// empty name leaves x as it is.
Result<ValueId> activated(NodeContext& c, ValueId x, std::string_view name,
                          const std::vector<float>& numbers);

}  // namespace librt::onnx
