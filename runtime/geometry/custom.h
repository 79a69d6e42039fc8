// Operators of the application: results and attributes as their node states them.
//
// Knows: how schema/ops.fbs packs them. Must not know: kernels, who registers them.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/graph/node_view.h"

namespace librt {

/// Values [first, first + count) of the list that `type` selects: 'i' ints, 'f' floats, 's' text.
struct CustomAttribute {
  std::string name;
  char type = 0;
  size_t first = 0, count = 0;
};

/// An error where the description is none, or speaks of other values than there are.
Result<std::vector<CustomAttribute>> custom_attributes(const op::CustomAttributes& attributes);

/// Types and shapes of the results for these operands.
Status infer_custom(const NodeView& node, std::vector<TensorInfo>& outputs);

/// How an extent of `outputs` says that it is that of an axis of an operand.
constexpr int64_t custom_extent_of(size_t input, int axis) noexcept {
  return -1 - (static_cast<int64_t>(input) * kMaxRank + axis);
}

}  // namespace librt
