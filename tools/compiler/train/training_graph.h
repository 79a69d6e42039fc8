// Graphs that can be differentiated: copying a graph through a builder, inlining composites on the way.
//
// Knows: which composites have no gradient rule of their own. Must not know: losses, optimizers, entries'
// names.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::compiler {

/// The states of a model, to which more are added.
class StateTable {
 public:
  explicit StateTable(std::vector<State>& states) : states_(states) {}
  /// Adds a state, under another name where a weight has this one; returns the same state when requested
  /// again, so that entries share it.
  uint32_t make(const std::string& name, const TensorInfo& info, StateKind kind, Blob initial = {});
  const State& operator[](uint32_t index) const { return states_[index]; }

 private:
  std::vector<State>& states_;
  std::map<std::string, uint32_t> made_;
  std::set<std::string> names_;  ///< of the first named_ states
  size_t named_ = 0;
};

struct Dropped {
  ValueId y, mask;  ///< mask: true where an element was kept
};

/// Each element of x is kept with the probability 1 - ratio (a scalar of x's type) and then divided by it.
/// shape: x's, as a shape operand; counter: of RandomUniform, or kNoValue.
Dropped emit_dropout(Emitter& emit, ValueId x, ValueId ratio, ValueId shape, int64_t seed,
                     ValueId counter = kNoValue);

/// Of an input that must fit a value of the graph.
struct InputLike {
  std::string name;
  DType dtype = DType::F32;
  ValueId like = kNoValue;
  std::string like_name;    ///< in messages
  std::vector<int> axes;    ///< of `like`: the input has their extents, in this order
  std::optional<Dim> last;  ///< of an axis that it has after these
};
/// An extent of `like` that does not follow from those of the graph's inputs has a symbol of its own in the
/// input, and a run is refused unless both are equal: the result is the input after that check.
ValueId input_like(Builder& builder, const InputLike& wanted);

/// Emits a replacement for a node, whose inputs are already those of the copy, and returns its outputs; an
/// empty result keeps the node.
using ReplaceNode = std::function<std::vector<ValueId>(const Node& node)>;

/// Copies `from` node by node into the builder's graph; map[value of from] is its copy. Outputs and state
/// updates are left to the caller.
Status copy_graph(const Graph& from, Builder& builder, std::vector<ValueId>& map, const ReplaceNode& replace);

/// Inlines every composite that has no gradient rule, also within inlined bodies.
Status write_out_composites(Graph& graph, const std::vector<State>& states);

/// Adds the entry `gradients` to a model with the entry `infer`: its inputs, then `grad.NAME` for every float
/// output NAME; its outputs, then `grad.NAME` for every float input NAME: the gradient of the sum of output
/// times grad.output. For gradient checks; on an error the model is unchanged. Every operator without a
/// gradient is named.
Status add_gradient_entry(ModelGraph& model, const std::vector<std::string>& outputs_with_gradient = {});

}  // namespace librt::compiler
