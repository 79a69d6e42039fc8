// A node as seen by shape rules, kernel predicates and kernel factories: its attributes and, at concrete
// shapes, its operands.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/core/tensor_view.h"
#include "runtime/graph/graph.h"

namespace librt {

/// One input of a node at concrete shapes.
struct Operand {
  bool present = false;
  TensorInfo info;
  const void* value =
      nullptr;  ///< host bytes when known at plan time (constants, shape arithmetic), else null
};

/// Borrows everything; valid only during the call it is passed to.
struct NodeView {
  const Node& node;
  std::span<const Operand> inputs;
  std::span<const TensorInfo> outputs = {};  ///< empty while shapes are being inferred

  size_t input_count() const noexcept { return inputs.size(); }
  bool has(size_t i) const noexcept { return i < inputs.size() && inputs[i].present; }
  const TensorInfo& input(size_t i) const noexcept { return inputs[i].info; }
  const Shape& shape(size_t i) const noexcept { return inputs[i].info.shape; }
  DType dtype(size_t i) const noexcept { return inputs[i].info.dtype; }
  const TensorInfo& output(size_t i) const noexcept { return outputs[i]; }
  OpKind kind() const noexcept { return node.kind(); }
  template <class Attributes>
  const Attributes& as() const noexcept {
    return node.as<Attributes>();
  }
  /// The values of an i64 shape operand; only when has(i) and inputs[i].value is known and dtype(i) is I64.
  std::span<const int64_t> ints(size_t i) const noexcept {
    return {static_cast<const int64_t*>(inputs[i].value), static_cast<size_t>(inputs[i].info.elements())};
  }
};

/// "Conv"; the name in the file for an operator that this build does not know.
std::string_view op_name(const Node& node);
/// "node 'conv1' (Conv)" as a part of a message.
struct NodeName {
  const Node& node;
};
void append(std::string& out, const NodeName& name);
inline NodeName describe(const Node& node) {
  return {node};
}

}  // namespace librt
