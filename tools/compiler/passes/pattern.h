// Helpers for passes that match patterns of nodes.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/geometry/function.h"
#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {

/// The nodes of a pattern without its root.
using Interior = std::vector<NodeId>;

/// Nothing outside the pattern reads its inner values.
inline bool is_closed(GraphEdit& edit, NodeId root, const Interior& interior) {
  size_t operands = edit.node(root).inputs.size();
  for (const NodeId id : interior) operands += edit.node(id).inputs.size();
  return std::all_of(interior.begin(), interior.end(), [&](NodeId id) {
    for (ValueId output : edit.node(id).outputs) {
      if (edit.is_output(output) || edit.use_count(output) > operands) return false;
      for (NodeId user : edit.users(output))
        if (user != root && std::find(interior.begin(), interior.end(), user) == interior.end()) return false;
    }
    return true;
  });
}

/// The activation that a node applies to its only input, as an epilogue; nullopt for any other node.
std::optional<op::EpilogueAttributes> activation_of(const Node& node);

/// A causal mask: key j of row i is masked if j > first + i.
struct CausalMask {
  ValueId first = kNoValue;  ///< i64, one element; kNoValue: 0
};
/// Matches a bool that is true exactly where a causal mask keeps a key (`shows`) or masks it (not `shows`).
std::optional<CausalMask> causal_condition(GraphEdit& edit, ValueId condition, bool shows);
/// The same for a constant that is added to scores: 0 where the key is kept, at most -1e4 elsewhere.
bool is_causal_constant(GraphEdit& edit, ValueId mask);

}  // namespace librt::compiler
