// Activations fused into another operator, whose node names them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tools/onnx/node.h"

namespace librt::onnx {

/// The activation with that ONNX name; numbers: its attributes in the order that ONNX documents them. An
/// empty name leaves x as it is.
Result<ValueId> activated(NodeContext& c, ValueId x, std::string_view name,
                          const std::vector<float>& numbers);

/// SwiGLU (Shazeer 2020, arXiv:2002.05202) with a slope and limits.
struct SwiGlu {
  float alpha = 1, beta = 0;
  std::optional<float> limit = {};

  /// g sigmoid(alpha g) (l + beta), where g = min(gate, limit) and l = clip(linear, -limit, limit).
  ValueId of(Emitter& emit, ValueId gate, ValueId linear) const;
};

}  // namespace librt::onnx
