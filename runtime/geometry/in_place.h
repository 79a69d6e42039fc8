// Which operand an element-wise result may be written over.
//
// Knows: types and shapes. Must not know: operators, devices.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/graph/node_view.h"

namespace librt {

/// The first operand that has the type and the shape of the node's first result.
inline std::optional<uint8_t> operand_like_result(const NodeView& node) noexcept {
  for (size_t i = 0; i < node.input_count(); ++i)
    if (node.input(i) == node.output(0)) return static_cast<uint8_t>(i);
  return std::nullopt;
}

}  // namespace librt
