#include "runtime/graph/node_view.h"

namespace librt {

std::string_view op_name(const Node& node) {
  // Of the application.
  if (node.kind() == OpKind::Custom) return node.as<op::CustomAttributes>().name;
  return node.kind() == OpKind::NONE && !node.unknown_op.empty() ? node.unknown_op : name_of(node.kind());
}

void append(std::string& out, const NodeName& name) {
  append(out, "node '", name.node.name, "' (", op_name(name.node), ")");
}

}  // namespace librt
