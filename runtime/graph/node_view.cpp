#include "runtime/graph/node_view.h"

namespace librt {

std::string_view op_name(const Node& node) {
  return node.kind() == OpKind::NONE && !node.unknown_op.empty() ? node.unknown_op : name_of(node.kind());
}

void append(std::string& out, const NodeName& name) {
  append(out, "node '", name.node.name, "' (", op_name(name.node), ")");
}

}  // namespace librt
