#include "runtime/graph/node_view.h"

namespace rt {

std::string describe(const Node& node) { return text("node '", node.name, "' (", name_of(node.kind()), ")"); }

}  // namespace rt
