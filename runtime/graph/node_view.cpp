#include "runtime/graph/node_view.h"

namespace rt {

std::string_view op_name(const Node& node) {
  return node.kind() == OpKind::NONE && !node.unknown_op.empty() ? node.unknown_op : name_of(node.kind());
}

std::string describe(const Node& node) {
  return text("node '", node.name, "' (", op_name(node), ")");
}

}  // namespace rt
