// What passes that look for patterns of nodes share.
#pragma once

#include <algorithm>
#include <vector>

#include "tools/compiler/graph_edit.h"

namespace rt::compiler {

/// Nodes that a pattern consists of, without its root.
using Interior = std::vector<NodeId>;

/// Nothing outside the pattern reads its inner values.
inline bool is_closed(GraphEdit& edit, NodeId root, const Interior& interior) {
  return std::all_of(interior.begin(), interior.end(), [&](NodeId id) {
    for (ValueId output : edit.node(id).outputs) {
      if (edit.is_output(output)) return false;
      for (NodeId user : edit.users(output))
        if (user != root && std::find(interior.begin(), interior.end(), user) == interior.end()) return false;
    }
    return true;
  });
}

/// The activation that a node applies to its only input, as an epilogue; nullopt for any other node.
std::optional<op::EpilogueAttributes> activation_of(const Node& node);
/// The node that an epilogue's activation is; Identity without one.
OpAttributes activation_node(const op::EpilogueAttributes& epilogue);

/// What a mask's elements hide: key j of row i if j > first + i.
struct CausalMask {
  ValueId first = kNoValue;  ///< i64, one element; kNoValue: 0
};
/// Whether this bool is true exactly where a causal mask shows (or hides) a key of scores with these last two
/// extents.
std::optional<CausalMask> causal_condition(GraphEdit& edit, ValueId condition, bool shows);
/// The same of a constant that is added to scores: 0 where it shows, hardly anything above -1e4 elsewhere.
bool is_causal_constant(GraphEdit& edit, ValueId mask);

}  // namespace rt::compiler
