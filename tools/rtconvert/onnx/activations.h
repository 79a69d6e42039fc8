// Activations that nodes name beside their operator, as runtimes write them when they fuse nodes.
#pragma once

#include <string_view>
#include <vector>

#include "tools/rtconvert/onnx/node.h"

namespace rt::onnx {

/// The activation with that ONNX name; numbers: its attributes in the order that ONNX documents them. A name
/// of no characters leaves x as it is.
Result<ValueId> activated(NodeContext& c, ValueId x, std::string_view name,
                          const std::vector<float>& numbers);

}  // namespace rt::onnx
