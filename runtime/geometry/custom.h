// Operators of the application: results and attributes as their node states them.
//
// Knows: how schema/ops.fbs packs them. Must not know: kernels, who registers them.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/graph/node_view.h"

namespace librt {

/// Values [first, first + count) of the list that `type` selects: 'i' ints, 'f' floats, 's' text. The name
/// refers to the node's attributes.
struct CustomAttribute {
  std::string_view name;
  char type = 0;
  size_t first = 0, count = 0;
};

/// The attributes one by one, of a node that outlives it.
class CustomAttributeReader {
 public:
  explicit CustomAttributeReader(const op::CustomAttributes& all)
      : rest_(all.attributes), lists_{{all.ints.size()}, {all.floats.size()}, {all.text.size()}} {}
  /// False after the last. An error where the description is none, or speaks of other values than there are.
  Result<bool> next(CustomAttribute& to);

 private:
  struct List {
    size_t size = 0, used = 0;
  };
  std::string_view rest_;
  List lists_[3];
};

/// Types and shapes of the results for these operands.
Status infer_custom(const NodeView& node, std::vector<TensorInfo>& outputs);

/// How an extent of `outputs` says that it is that of an axis of an operand.
constexpr int64_t custom_extent_of(size_t input, int axis) noexcept {
  return -1 - (static_cast<int64_t>(input) * kMaxRank + axis);
}

}  // namespace librt
