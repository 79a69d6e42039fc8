#include "runtime/session/prepare/partition.h"

#include <algorithm>
#include <span>

#include "runtime/ops/control.h"

namespace librt {
namespace {

constexpr int64_t kShapeLikeFloats = 8;

/// Looks like a shape: such an input of an entry is read while planning if it determines shapes.
bool is_shape_like(const Value& value) {
  if (value.rank() > 1) return false;
  if (!is_float(value.dtype) || value.rank() == 0) return true;
  return value.dims[0].is_known() && value.dims[0].extent <= kShapeLikeFloats;
}

class Partitioner {
 public:
  Partitioner(const Graph& graph, GraphKind graph_kind)
      : graph_(graph),
        from_data_(graph.values.size()),
        producers_(producers(graph)),
        host_(graph.nodes.size()),
        stage_(graph.nodes.size()),
        local_symbols_(graph.symbols.size(), -1) {
    for (ValueId id = 0; id < graph.values.size(); ++id) {
      const Value& value = graph[id];
      from_data_[id] =
          value.role == Role::State ||
          (value.role == Role::Input && (graph_kind == GraphKind::Body || !is_shape_like(value)));
    }
    for (NodeId id = 0; id < graph.nodes.size(); ++id) visit(id);
  }

  bool is_needed() const {
    return std::ranges::any_of(stage_, [](int stage) { return stage > 0; }) ||
           std::ranges::find(host_, true) != host_.end();
  }

  std::vector<PartitionStep> run() {
    std::vector<PartitionStep> steps;
    const int last = last_stage();
    find_crossing(last);
    local_.assign(graph_.values.size(), kNoValue);
    // By stage, in order.
    std::vector<std::vector<NodeId>> nodes(static_cast<size_t>(last) + 1);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) nodes[static_cast<size_t>(stage_[id])].push_back(id);
    std::vector<std::vector<ValueId>> leaving(nodes.size());
    for (ValueId id = 0; id < graph_.values.size(); ++id)
      if (crossing_[id] && home(id) >= 0) leaving[static_cast<size_t>(home(id))].push_back(id);
    for (int stage = 0; stage <= last; ++stage) {
      const std::vector<NodeId>& all = nodes[static_cast<size_t>(stage)];
      PartitionStep segment = make_segment(stage, stage == last, all, leaving[static_cast<size_t>(stage)]);
      const Graph& made = *segment.segment;
      if (!made.nodes.empty() || !made.outputs.empty() || !made.state_updates.empty())
        steps.push_back(std::move(segment));
      for (const NodeId id : all)
        if (host_[id]) steps.push_back({.node = &graph_.nodes[id]});
    }
    return steps;
  }

 private:
  bool is_shape_operand(const Node& node, size_t input) const {
    const ops::Page* page = ops::page_of(node.kind());
    return page != nullptr && input < 32 && (page->shape_operands >> input & 1u) != 0;
  }

  /// Decides where the node runs, and in which stage: after the host nodes of the previous stage that it
  /// depends on.
  void visit(NodeId id) {
    const Node& node = graph_.nodes[id];
    bool data = false, open = false;  // an input depends on data; a shape operand does
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !from_data_[node.inputs[i]]) continue;
      data = true;
      open = open || is_shape_operand(node, i);
    }
    host_[id] = ops::runs_on_host(node.kind()) || (open && ops::host_value(node.kind()) != nullptr);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !producers_[node.inputs[i]]) continue;
      const NodeId from = *producers_[node.inputs[i]];
      const bool ends_segment =
          !host_[id] && (host_[from] || (is_shape_operand(node, i) && from_data_[node.inputs[i]]));
      stage_[id] = std::max(stage_[id], stage_[from] + (ends_segment ? 1 : 0));
    }
    const bool known = node.kind() == OpKind::Shape;  // known when the segment starts
    for (const ValueId output : node.outputs)
      if (output != kNoValue) from_data_[output] = (data && !known) || ops::runs_on_host(node.kind());
  }

  /// State updates come after everything that may read a state.
  int last_stage() const {
    int last = 0;
    for (const int stage : stage_) last = std::max(last, stage);
    for (NodeId id = 0; id < graph_.nodes.size() && !graph_.state_updates.empty(); ++id)
      if (host_[id] && stage_[id] == last) return last + 1;
    return last;
  }

  /// The stage whose segment has the value; -1 for a graph's input, a constant, or the result of a host node.
  int home(ValueId id) const {
    if (graph_[id].role == Role::State) return 0;
    if (!producers_[id] || host_[*producers_[id]]) return -1;
    return stage_[*producers_[id]];
  }

  /// Marks the values that segments must output.
  void find_crossing(int last) {
    crossing_.assign(graph_.values.size(), false);
    const auto read = [&](ValueId id, int stage, bool on_host) {
      if (id == kNoValue || home(id) < 0) return;
      // A state can be read by any segment directly.
      if (on_host || (home(id) != stage && graph_[id].role != Role::State)) crossing_[id] = true;
    };
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      for (const ValueId input : graph_.nodes[id].inputs) read(input, stage_[id], host_[id]);
    for (const ValueId output : graph_.outputs) read(output, -1, true);
    for (const StateUpdate& update : graph_.state_updates) read(update.value, last, false);
  }

  /// nodes: of the stage. leaving: its values that other segments and host nodes read.
  PartitionStep make_segment(int stage, bool is_last, std::span<const NodeId> nodes,
                             std::span<const ValueId> leaving) {
    PartitionStep step{.segment = std::make_unique<Graph>()};
    Graph& made = *step.segment;
    made.name = text(graph_.name, '/', stage);
    std::vector<ValueId> known;
    std::vector<int32_t> named;
    const auto local = [&](ValueId id) {
      if (id == kNoValue || local_[id] != kNoValue) return id == kNoValue ? id : local_[id];
      known.push_back(id);
      Value value = graph_[id];
      for (Dim& dim : value.dims) dim.symbol = local_symbol(dim.symbol, made, named);
      const bool inside = value.role == Role::Constant || value.role == Role::State || home(id) == stage;
      value.role = inside ? value.role : Role::Input;
      local_[id] = made.add_value(std::move(value));
      if (!inside) {
        made.inputs.push_back(local_[id]);
        step.inputs.push_back(id);
      }
      return local_[id];
    };
    for (const NodeId id : nodes) {
      if (host_[id]) continue;
      Node node = graph_.nodes[id];
      for (ValueId& input : node.inputs) input = local(input);
      for (ValueId& output : node.outputs) output = local(output);
      made.nodes.push_back(std::move(node));
    }
    for (const ValueId id : leaving) {
      made.outputs.push_back(local(id));
      step.outputs.push_back(id);
    }
    if (is_last)
      for (const StateUpdate& update : graph_.state_updates)
        made.state_updates.push_back({local(update.state), local(update.value)});
    for (const ValueId id : known) local_[id] = kNoValue;
    for (const int32_t symbol : named) local_symbols_[static_cast<size_t>(symbol)] = -1;
    return step;
  }

  /// The segment's own number of a symbol of the graph: with those that its definition refers to. A segment
  /// has only what it needs, because there may be as many segments as symbols.
  int32_t local_symbol(int32_t symbol, Graph& made, std::vector<int32_t>& named) {
    if (symbol < 0 || static_cast<size_t>(symbol) >= graph_.symbols.size()) return symbol;
    int32_t& number = local_symbols_[static_cast<size_t>(symbol)];
    if (number >= 0) return number;
    Symbol copy = graph_.symbols[static_cast<size_t>(symbol)];
    for (ExtentTerm& term : copy.definition)  // of symbols without a definition
      if (term.op == ExtentOp::Symbol)
        term.value = local_symbol(static_cast<int32_t>(term.value), made, named);
    number = static_cast<int32_t>(made.symbols.size());
    named.push_back(symbol);
    made.symbols.push_back(std::move(copy));
    return number;
  }

  const Graph& graph_;
  std::vector<uint8_t> from_data_;  ///< by value: not known while planning
  std::vector<std::optional<NodeId>> producers_;
  std::vector<uint8_t> host_;  ///< by node
  std::vector<int> stage_;     ///< by node: of its segment, or of the segment before a host node
  std::vector<uint8_t> crossing_;
  std::vector<ValueId> local_;          ///< by value: its id in the segment that is being made
  std::vector<int32_t> local_symbols_;  ///< by symbol: the same; -1 for none
};

}  // namespace

bool needs_partition(const Graph& graph) {
  return Partitioner(graph, GraphKind::Entry).is_needed();
}

std::vector<PartitionStep> partition_graph(const Graph& graph, GraphKind graph_kind) {
  return Partitioner(graph, graph_kind).run();
}

}  // namespace librt
