// elementwise: joins element-wise operators that feed each other into one node, which reads and writes memory
// once.
//
//   before  t = Mul(x, a), u = Add(t, b), y = Sigmoid(u)      t, u: read by nothing else
//   after   y = Elementwise(x, a, b): t = x a, u = t + b, sigmoid(u)
//
// Exact: every step is rounded as its node was. All steps have the result's dims, so that none is computed
// more often than before; an operand may be smaller. After all pattern matching, since other passes do not
// look into the node; write_out_elementwise, for graphs that were compiled before, is the inverse.
#include <algorithm>
#include <optional>

#include "runtime/geometry/elementwise.h"
#include "runtime/ops/page.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

/// Results of this many elements at most may be shape arithmetic, which is computed while planning.
constexpr int64_t kMostShapeElements = kMaxRank;

/// One node in the making.
class Chain {
 public:
  Chain(GraphEdit& edit, NodeId last) : edit_(edit), result_(edit.node(last).outputs[0]), members_{last} {}

  /// Takes in producers of operands until there are none that fit.
  void grow() {
    while (const std::optional<NodeId> next = producer_to_add()) members_.push_back(*next);
  }

  size_t size() const noexcept { return members_.size(); }

  /// Emits the node; without effect where no operand has the result's type.
  void write() {
    std::sort(members_.begin(), members_.end());
    std::vector<ValueId> values = operands();
    const DType type = edit_.value(result_).dtype;
    const auto rank_of = [&](ValueId id) {
      return edit_.value(id).dtype != type ? 2 : edit_.same_info(id, result_) ? 0 : 1;
    };
    // The first operand has the result's type and, if one has, its dims.
    std::stable_sort(values.begin(), values.end(),
                     [&](ValueId a, ValueId b) { return rank_of(a) < rank_of(b); });
    if (edit_.value(values.front()).dtype != type) return;
    const std::vector<ValueId> inputs = values;
    op::ElementwiseAttributes attributes;
    for (const NodeId id : members_) {
      const Node& node = edit_.node(id);
      std::array<int64_t, 3> positions{-1, -1, -1};
      for (size_t k = 0; k < node.inputs.size(); ++k)
        positions[k] = std::find(values.begin(), values.end(), node.inputs[k]) - values.begin();
      append_step(attributes, node, positions);
      values.push_back(node.outputs[0]);
    }
    edit_.rewrite(members_.back(), std::move(attributes), inputs);
  }

  /// Whether the node can be a step of a chain whose result has this type.
  static bool can_be_step(GraphEdit& edit, NodeId id, DType type) {
    const Node& node = edit.node(id);
    const std::optional<ElementwiseStep> step = elementwise_step(node);
    if (node.outputs.size() != 1 || !step) return false;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == kNoValue ||
          edit.value(node.inputs[k]).dtype != (step->takes_bool(static_cast<int>(k)) ? DType::Bool : type))
        return false;
    return edit.value(node.outputs[0]).dtype == (step->gives_bool() ? DType::Bool : type);
  }

 private:
  bool contains(NodeId id) const { return std::find(members_.begin(), members_.end(), id) != members_.end(); }

  /// What the members read and do not compute, each once.
  std::vector<ValueId> operands() {
    std::vector<ValueId> found;
    for (const NodeId id : members_)
      for (const ValueId input : edit_.node(id).inputs)
        if (!contains(edit_.producer_id(input)) &&
            std::find(found.begin(), found.end(), input) == found.end())
          found.push_back(input);
    return found;
  }

  std::optional<NodeId> producer_to_add() {
    if (members_.size() == kMostElementwiseSteps) return std::nullopt;
    const std::vector<ValueId> read = operands();
    for (const ValueId value : read) {
      const NodeId producer = edit_.producer_id(value);
      if (producer == kNoNode || edit_.is_output(value) || !fits(value, producer)) continue;
      members_.push_back(producer);
      const bool few = operands().size() <= kMostElementwiseInputs;
      members_.pop_back();
      if (few) return producer;
    }
    return std::nullopt;
  }

  bool fits(ValueId value, NodeId producer) {
    // A step reads a value at most three times; looking at its users takes time for each.
    if (edit_.use_count(value) > 3 * members_.size()) return false;
    if (!can_be_step(edit_, producer, edit_.value(result_).dtype) ||
        edit_.builder().comparable_shape(value) != edit_.builder().comparable_shape(result_))
      return false;
    const std::vector<NodeId> users = edit_.users(value);
    return std::all_of(users.begin(), users.end(), [&](NodeId user) { return contains(user); });
  }

  GraphEdit& edit_;
  ValueId result_;
  std::vector<NodeId> members_;
};

bool may_end_chain(GraphEdit& edit, NodeId id) {
  if (!edit.is_alive(id) || edit.node(id).outputs.size() != 1) return false;
  const Value& result = edit.value(edit.node(id).outputs[0]);
  if (result.dtype != DType::F32 && result.dtype != DType::F16 && result.dtype != DType::BF16) return false;
  if (result.is_static() && result.info().elements() <= kMostShapeElements) return false;
  return Chain::can_be_step(edit, id, result.dtype);
}

}  // namespace

Status elementwise(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  for (NodeId id = edit.node_count(); id-- > 0 && edit.status().ok();) {
    if (!may_end_chain(edit, id)) continue;
    Chain chain(edit, id);
    chain.grow();
    if (chain.size() > 1) chain.write();
  }
  return edit.finish();
}

Status write_out_elementwise(Graph& graph, const PassContext& context) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(),
                   [](const Node& node) { return node.kind() == OpKind::Elementwise; }))
    return {};
  GraphEdit edit(graph, context.states, context.inferred);
  const ops::CompilerPage& page = *ops::compiler_page_of(OpKind::Elementwise);
  for (NodeId id = 0, count = edit.node_count(); id < count && edit.status().ok(); ++id) {
    if (!edit.is_alive(id, OpKind::Elementwise)) continue;
    edit.name_after(id);
    const Node node = edit.node(id);
    const std::vector<ValueId> results = page.body(edit.builder(), node, node.inputs);
    if (results.empty()) break;  // the builder has the error
    edit.replace(node.outputs[0], results[0]);
  }
  return edit.finish();
}

}  // namespace librt::compiler
