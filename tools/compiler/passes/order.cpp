// order: chooses among the topological orders one that keeps fewer bytes alive.
//
// A wait for other ranks runs when nothing else can, so that communication has the most time. A node that
// does not add to the live bytes runs as soon as it can (an optimizer step frees its gradient); a node that
// nothing waits for yet, such as the widening of a weight, runs as late as it can; all others keep their
// order. A node whose result becomes a state runs after the other readers of that state, so that it may be
// written in place.
#include <algorithm>
#include <queue>
#include <set>

#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

class Scheduler {
 public:
  Scheduler(const Graph& graph, const Builder& builder)
      : graph_(graph),
        builder_(builder),
        uses_(use_counts(graph)),
        waits_(graph.nodes.size()),
        readers_(graph.nodes.size()) {
    producers_ = producers(graph);
    for (NodeId id = 0; id < graph.nodes.size(); ++id)
      for (ValueId input : graph.nodes[id].inputs)
        if (input != kNoValue && producers_[input]) add_edge(*producers_[input], id);
  }

  /// The writer of a state waits for those who read it, unless they depend on the writer.
  void add_state_edges() {
    for (const StateUpdate& update : graph_.state_updates) {
      if (!producers_[update.value]) continue;
      const NodeId writer = *producers_[update.value];
      const std::vector<bool> after = reachable_from(writer);
      for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
        if (id == writer || after[id]) continue;
        for (ValueId input : graph_.nodes[id].inputs)
          if (input != kNoValue && graph_[input].role == Role::State &&
              graph_[input].state == graph_[update.state].state)
            add_edge(id, writer);
      }
    }
  }

  /// Empty when the edges form a cycle.
  std::vector<NodeId> run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      if (waits_[id] == 0) ready_.insert(id);
    std::vector<NodeId> order;
    while (!ready_.empty()) {
      const NodeId id = pick();
      ready_.erase(id);
      order.push_back(id);
      for (ValueId input : graph_.nodes[id].inputs)
        if (input != kNoValue) --uses_[input];
      for (NodeId reader : readers_[id])
        if (--waits_[reader] == 0) ready_.insert(reader);
    }
    if (order.size() != graph_.nodes.size()) order.clear();
    return order;
  }

 private:
  void add_edge(NodeId from, NodeId to) {
    readers_[from].push_back(to);
    ++waits_[to];
  }

  std::vector<bool> reachable_from(NodeId start) const {
    std::vector<bool> seen(graph_.nodes.size());
    std::vector<NodeId> stack{start};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      stack.insert(stack.end(), readers_[id].begin(), readers_[id].end());
    }
    return seen;
  }

  double bytes(ValueId id) const { return static_cast<double>(builder_.probe(id, 0).info.bytes()); }

  /// By how much the node adds to the live bytes.
  double growth(NodeId id) const {
    double total = 0;
    for (ValueId output : graph_.nodes[id].outputs) total += bytes(output);
    std::vector<ValueId> inputs = graph_.nodes[id].inputs;
    std::sort(inputs.begin(), inputs.end());
    for (size_t i = 0; i < inputs.size();) {
      const size_t first = i;
      while (i < inputs.size() && inputs[i] == inputs[first]) ++i;
      const ValueId input = inputs[first];
      if (input != kNoValue && producers_[input] && uses_[input] == i - first) total -= bytes(input);
    }
    return total;
  }

  NodeId pick() const {
    for (NodeId id : ready_)
      if (growth(id) <= 0 && !is_source(id) && !is_wait(id)) return id;
    for (NodeId id : ready_)
      if ((!is_source(id) || unblocks(id)) && !is_wait(id)) return id;
    return *ready_.begin();
  }
  bool is_wait(NodeId id) const { return graph_.nodes[id].kind() == OpKind::CollectiveWait; }
  /// Reads nothing that another node computes: it can always run later.
  bool is_source(NodeId id) const {
    const auto& inputs = graph_.nodes[id].inputs;
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      return input == kNoValue || graph_[input].role == Role::Constant;
    });
  }
  bool unblocks(NodeId id) const {
    return std::any_of(readers_[id].begin(), readers_[id].end(),
                       [&](NodeId reader) { return waits_[reader] == 1; });
  }

  const Graph& graph_;
  const Builder& builder_;
  std::vector<std::optional<NodeId>> producers_;
  std::vector<uint32_t> uses_;
  std::vector<size_t> waits_;
  std::vector<std::vector<NodeId>> readers_;
  std::set<NodeId> ready_;
};

}  // namespace

Status order(Graph& graph, const PassContext& context) {
  RT_TRY(tidy(graph));
  const Builder builder(graph, &context.states);
  RT_TRY(Status(builder.status()));
  Scheduler with_states(graph, builder);
  with_states.add_state_edges();
  std::vector<NodeId> sequence = with_states.run();
  if (sequence.empty()) sequence = Scheduler(graph, builder).run();
  std::vector<Node> nodes;
  nodes.reserve(sequence.size());
  for (NodeId id : sequence) nodes.push_back(std::move(graph.nodes[id]));
  graph.nodes = std::move(nodes);
  return {};
}

}  // namespace librt::compiler
