// GraphEdit: the interface through which passes rewrite a graph.
//
// Knows: producers and users of values, how to replace a value, and how to restore a topological order
// afterwards. New nodes go through a Builder, so that their dims are known at once. Must not know: what an
// operator means.
//
// While an edit is open the graph's nodes may be out of order and dead nodes may remain; finish() sorts,
// drops dead nodes, and closes the edit. Node& and Value& become invalid when a node is emitted: copy what
// you need.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::compiler {

class GraphEdit {
 public:
  /// cache: may be null; finish() fills it if there were no changes.
  GraphEdit(Graph& graph, const std::vector<State>& states, InferenceCache* cache = nullptr);

  // --- queries
  Builder& builder() noexcept { return builder_; }
  const Status& status() const noexcept { return builder_.status(); }
  /// Grows while nodes are emitted; iterate over ids, not over references.
  NodeId node_count() const noexcept { return static_cast<NodeId>(graph_.nodes.size()); }
  const Node& node(NodeId id) const noexcept { return graph_.nodes[id]; }
  const Value& value(ValueId id) const noexcept { return graph_.values[id]; }
  bool is_alive(NodeId id);
  bool is_alive(NodeId id, OpKind kind) { return is_alive(id) && node(id).kind() == kind; }
  /// The node that produces a value; null for inputs, constants, states, and kNoValue.
  const Node* producer(ValueId id);
  /// The producer if it has this kind.
  const Node* producer(ValueId id, OpKind kind);
  NodeId producer_id(ValueId id);
  /// Live nodes that read the value, once for each use; takes time for each.
  std::vector<NodeId> users(ValueId id);
  /// Uses by nodes, as graph outputs, and by state updates.
  size_t use_count(ValueId id);
  /// Whether it is an output of the graph or the new value of a state.
  bool is_output(ValueId id) const { return outputs_.contains(id) || updates_.contains(id); }
  bool is_constant(ValueId id) const { return id != kNoValue && value(id).role == Role::Constant; }
  /// Input i of a node, kNoValue beyond the end.
  ValueId input(const Node& node, size_t i) const {
    return i < node.inputs.size() ? node.inputs[i] : kNoValue;
  }
  /// The value that all elements of a constant have; nullopt when it is not constant, large, or not uniform.
  std::optional<double> uniform(ValueId id) const;
  /// The entries of an i64 value that does not depend on the inputs.
  std::optional<std::vector<int64_t>> ints(ValueId id) const;
  /// Extents if all are static.
  std::optional<Shape> shape(ValueId id) const;
  /// The same type and provably the same dims.
  bool same_info(ValueId a, ValueId b) const;

  // --- changes
  template <class Attributes>
  ValueId emit(Attributes attributes, const std::vector<ValueId>& inputs) {
    return builder_.emit_many(make_op(std::move(attributes)), inputs, 1)[0];
  }
  /// New nodes take this node's name (with a suffix, until the old one is gone).
  void name_after(NodeId id) { builder_.set_scope(graph_.nodes[id].name); }
  /// All readers of `old` read `replacement`, which has the same type and dims; externally visible names
  /// stay. Dead nodes are removed.
  void replace(ValueId old, ValueId replacement);
  /// Changes one operand to a value; the node's results must keep their dims.
  void set_input(NodeId id, size_t i, ValueId replacement);
  /// Replaces the only result of a node by that of a new one with these attributes and inputs.
  template <class Attributes>
  ValueId rewrite(NodeId id, Attributes attributes, const std::vector<ValueId>& inputs) {
    const ValueId old = graph_.nodes[id].outputs[0];
    name_after(id);
    const ValueId fresh = emit(std::move(attributes), inputs);
    if (fresh != kNoValue) replace(old, fresh);
    return fresh;
  }
  /// How many values were replaced and inputs changed so far.
  size_t changes() const noexcept { return changes_; }

  /// Sorts the nodes, removes dead nodes and unused values, and closes the edit.
  Status finish();

 private:
  /// An operand of a node, in the list of all operands that are the same value. Its index is that of the
  /// node's first operand plus its position.
  struct Use {
    NodeId user = 0;
    uint32_t previous = kEnd, next = kEnd;
  };
  /// What reads a value: the list of operands in the order in which they came to read it, and their number
  /// together with that of graph outputs and state updates.
  struct Readers {
    uint32_t first = kEnd, last = kEnd;
    size_t count = 0;
  };
  static constexpr uint32_t kEnd = 0xffffffffu;
  /// Where the graph lists a value.
  using Positions = std::unordered_map<ValueId, std::vector<size_t>>;

  void sync();
  void count(ValueId id, ptrdiff_t more);
  void add_use(ValueId id, uint32_t use);
  void remove_use(ValueId id, uint32_t use);
  /// The graph's list reads another value.
  void move_positions(Positions& positions, ValueId old, ValueId replacement);
  void move_readers(ValueId old, ValueId replacement);
  void remove_if_unused(NodeId id);

  Graph& graph_;
  InferenceCache* cache_;
  bool was_tidy_;  ///< when the edit began
  Builder builder_;
  NodeId first_new_;
  size_t first_new_value_;
  std::vector<bool> dead_;
  std::vector<NodeId> producers_;     ///< by value
  std::vector<Readers> readers_;      ///< by value
  std::vector<uint32_t> first_uses_;  ///< by node
  std::vector<size_t> result_uses_;   ///< by node: of all its results
  std::vector<Use> uses_;
  Positions outputs_, updates_;
  size_t indexed_ = 0;  ///< nodes that these cover
  size_t changes_ = 0;
};

inline constexpr NodeId kNoNode = 0xffffffffu;

/// Brings nodes into topological order, each new one just before its first reader and the others in their
/// order, and drops nodes and values that neither outputs nor state updates depend on.
Status tidy(Graph& graph);

/// By value: whether it is the new value of a state, made by a node that reads the old one, and no output. It
/// may be written over the old one, and then adds nothing to the bytes that are alive. made_by: producers().
std::vector<bool> updated_in_place(const Graph& graph, std::span<const std::optional<NodeId>> made_by);

/// Drops unused values and renumbers the rest. Graph inputs stay.
void compact_values(Graph& graph);

}  // namespace librt::compiler
