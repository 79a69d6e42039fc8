// A node's attributes by name, for operators imported by the Importer itself (others have NodeContext).
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {

/// AttributeProto::type, as in the ONNX standard.
enum AttributeType : int {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kFloats = 6,
  kInts = 7,
  kStrings = 8
};

/// Null where the node does not have it.
inline const rt_onnx::AttributeProto* find_attribute(const rt_onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

/// Calls visit(graph) for each graph inside the node, a branch or a body.
template <class Node, class Visit>
void each_body(Node& node, const Visit& visit) {
  if constexpr (std::is_const_v<Node>) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) visit(attribute.g());
      for (const auto& graph : attribute.graphs()) visit(graph);
    }
  } else {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) visit(*attribute.mutable_g());
      for (auto& graph : *attribute.mutable_graphs()) visit(graph);
    }
  }
}

inline std::vector<int64_t> integers_of(const rt_onnx::NodeProto& node, std::string_view name) {
  const auto* found = find_attribute(node, name);
  if (found == nullptr) return {};
  return {found->ints().begin(), found->ints().end()};
}

inline int64_t integer_of(const rt_onnx::NodeProto& node, std::string_view name, int64_t otherwise) {
  const auto* found = find_attribute(node, name);
  return found != nullptr ? found->i() : otherwise;
}

}  // namespace librt::onnx
