// order: chooses among the topological orders one that keeps fewer bytes alive.
//
// A wait for other ranks runs when nothing else can, so that communication has the most time. A node that
// does not add to the live bytes runs as soon as it can; a node that nothing waits for yet, such as the
// widening of a weight, runs as late as it can; all others keep their order. A node whose result becomes a
// state runs after the other readers of that state, so that it may be written in place: it adds no bytes.
//
// An optimizer step frees its gradient, but devices run adjacent steps as one launch. The order is therefore
// found twice: steps that run as soon as they can show the peak that is possible; then they are put off, and
// all that are pending run before a node that would exceed this peak.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "runtime/geometry/optimizer_step.h"
#include "runtime/ops/page.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

/// Of all searches for readers that depend on a writer, some tenths of a second; what was not searched by
/// then counts as dependent, and its state may not be written in place.
constexpr size_t kMostSteps = size_t{1} << 26;

/// Optimizer steps stay together, in one launch, unless running them early saves this part of the peak.
constexpr double kLeastSaving = 0.1;

/// Extents that are known only at run time are larger in training than at the examples, which have two
/// samples in a batch: values with one count so many times.
constexpr double kTrainingScale = 8;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

bool is_optimizer_step(OpKind kind) {
  return kind == OpKind::BlockwiseStep || !step_states(kind).empty();
}

/// Whether the result takes the memory of an operand that dies.
bool overwrites_operand(OpKind kind) {
  return kind == OpKind::Reshape || kind == OpKind::Identity || ops::form_of(kind) != ops::Form::Opaque;
}

struct Sequence {
  std::vector<NodeId> nodes;  ///< empty when the edges form a cycle
  double peak = 0;            ///< of the live bytes
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, const Builder& builder)
      : graph_(graph),
        builder_(builder),
        producers_(producers(graph)),
        in_place_(updated_in_place(graph, producers_)),
        dynamic_scale_(has_optimizer_steps() ? kTrainingScale : 1),
        edges_to_(graph.nodes.size()),
        readers_(graph.nodes.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id)
      for (ValueId input : graph.nodes[id].inputs)
        if (input != kNoValue && producers_[input]) add_edge(*producers_[input], id);
  }

  /// The writer of a state waits for those who read it, unless they depend on the writer.
  void add_state_edges() {
    std::map<uint32_t, std::vector<NodeId>> state_readers;  // once for each operand
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      for (ValueId input : graph_.nodes[id].inputs)
        if (input != kNoValue && graph_[input].role == Role::State)
          state_readers[graph_[input].state].push_back(id);
    Reached reached{.at = std::vector<uint32_t>(graph_.nodes.size())};
    for (const StateUpdate& update : graph_.state_updates) {
      const auto found = state_readers.find(graph_[update.state].state);
      if (!producers_[update.value] || found == state_readers.end()) continue;
      const NodeId writer = *producers_[update.value];
      std::vector<NodeId> others = found->second;
      std::erase(others, writer);
      find_dependent(writer, others, reached);
      for (const NodeId id : others)
        if (!reached.has(id)) add_edge(id, writer);
    }
  }

  bool has_optimizer_steps() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                       [](const Node& node) { return is_optimizer_step(node.kind()); });
  }

  /// Optimizer steps run as soon as they can.
  Sequence run() {
    steps_wait_ = false;
    return run_all(kUnlimited);
  }
  /// Optimizer steps run together, when nothing else can run or would exceed `limit` live bytes.
  Sequence run_steps_together(double limit) {
    steps_wait_ = true;
    return run_all(limit);
  }

 private:
  Sequence run_all(double limit) {
    start();
    Sequence sequence;
    bool stepping = false;
    while (!ready_.empty()) {
      stepping = stepping && !pending_.empty();
      NodeId id = stepping ? *pending_.begin() : pick();
      if (!stepping && live_ + transient(id) > limit && pending_shrink()) id = *pending_.begin();
      stepping = stepping || pending_.contains(id);
      sequence.peak = std::max(sequence.peak, live_ + transient(id));
      sequence.nodes.push_back(id);
      finish(id);
    }
    if (sequence.nodes.size() != graph_.nodes.size()) sequence.nodes.clear();
    return sequence;
  }

  void finish(NodeId id) {
    for (std::set<NodeId>* nodes : {&ready_, &willing_, &shrinking_, &pending_}) nodes->erase(id);
    live_ += growth_[id];
    for (const ValueId output : graph_.nodes[id].outputs)
      if (left_[output] == 0 && !stays_[output]) live_ -= bytes(output);
    for (const ValueId input : distinct_inputs(id)) finish_reading(input, id);
    for (const NodeId reader : readers_[id]) {
      waiting_for_[reader] -= id;
      if (--waits_[reader] == 0) make_ready(reader);
      if (waits_[reader] == 1) unblock(static_cast<NodeId>(waiting_for_[reader]));
    }
  }

  /// What the node adds to the live bytes while it runs.
  double transient(NodeId id) const {
    if (overwrites_operand(graph_.nodes[id].kind())) return std::max(growth_[id], 0.0);
    double made = 0;
    for (const ValueId output : graph_.nodes[id].outputs) made += bytes(output);
    return made;
  }
  /// Whether the optimizer steps that were put off free memory.
  bool pending_shrink() const {
    return std::any_of(pending_.begin(), pending_.end(), [&](NodeId id) { return growth_[id] < 0; });
  }

  /// The nodes that depend on the writer that was searched from last.
  struct Reached {
    std::vector<uint32_t> at = {};  ///< by node: number of the search that reached it
    uint32_t search = 0;
    size_t steps = kMostSteps;  ///< that are left
    bool gave_up = false;
    bool has(NodeId id) const { return gave_up || at[id] == search; }
  };

  void add_edge(NodeId from, NodeId to) {
    readers_[from].push_back(to);
    ++edges_to_[to];
    if (from > to) last_backward_ = std::max(last_backward_, from);
  }

  void find_dependent(NodeId writer, std::span<const NodeId> nodes, Reached& reached) const {
    ++reached.search;
    reached.gave_up = false;
    if (nodes.empty()) return;
    // Nodes are in topological order, and only edges to states' writers lead backwards.
    const NodeId last = std::max(last_backward_, *std::max_element(nodes.begin(), nodes.end()));
    std::vector<NodeId> stack;
    if (last > writer) stack.push_back(writer);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (reached.at[id] == reached.search) continue;
      reached.at[id] = reached.search;
      reached.gave_up = reached.gave_up || reached.steps <= readers_[id].size();
      if (reached.gave_up) return;
      reached.steps -= readers_[id].size() + 1;
      for (const NodeId reader : readers_[id])
        if (reader <= last) stack.push_back(reader);
    }
  }

  /// That it adds to the live bytes.
  double bytes(ValueId id) const {
    if (in_place_[id]) return 0;
    const auto& dims = graph_[id].dims;
    const bool is_static =
        std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_known(); });
    return (is_static ? 1 : dynamic_scale_) * static_cast<double>(builder_.example_info(id).bytes());
  }

  std::vector<ValueId> distinct_inputs(NodeId id) const {
    std::vector<ValueId> inputs = graph_.nodes[id].inputs;
    std::erase(inputs, kNoValue);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    return inputs;
  }

  void start() {
    const size_t count = graph_.nodes.size();
    live_ = 0;
    waits_ = edges_to_;
    growth_.assign(count, 0);
    waiting_for_.assign(count, 0);
    unblocks_.assign(count, false);
    is_source_.assign(count, false);
    reading_.assign(graph_.values.size(), 0);
    left_.assign(graph_.values.size(), 0);
    stays_.assign(graph_.values.size(), false);
    for (const ValueId output : graph_.outputs) stays_[output] = true;
    for (const StateUpdate& update : graph_.state_updates) stays_[update.value] = true;
    for (NodeId id = 0; id < count; ++id) {
      for (const ValueId output : graph_.nodes[id].outputs) growth_[id] += bytes(output);
      for (const ValueId input : distinct_inputs(id)) {
        reading_[input] += id;
        ++left_[input];
      }
      const auto& inputs = graph_.nodes[id].inputs;
      is_source_[id] = std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
        return input == kNoValue || graph_[input].role == Role::Constant;
      });
      for (const NodeId reader : readers_[id]) waiting_for_[reader] += id;
    }
    for (ValueId id = 0; id < graph_.values.size(); ++id) note_last_reader(id);
    for (NodeId id = 0; id < count; ++id) {
      if (waits_[id] == 0) make_ready(id);
      if (waits_[id] == 1) unblock(static_cast<NodeId>(waiting_for_[id]));
    }
  }

  void finish_reading(ValueId value, NodeId reader) {
    reading_[value] -= reader;
    --left_[value];
    note_last_reader(value);
  }

  /// The value dies with the only node that still reads it, which adds less to the live bytes then.
  void note_last_reader(ValueId value) {
    if (left_[value] != 1 || stays_[value] || !producers_[value]) return;
    const auto reader = static_cast<NodeId>(reading_[value]);
    growth_[reader] -= bytes(value);
    if (ready_.contains(reader)) classify(reader);
  }

  void make_ready(NodeId id) {
    ready_.insert(id);
    classify(id);
  }
  void unblock(NodeId id) {
    unblocks_[id] = true;
    if (ready_.contains(id)) classify(id);
  }
  void classify(NodeId id) {
    const OpKind kind = graph_.nodes[id].kind();
    if (kind == OpKind::CollectiveWait) return;
    if (steps_wait_ && is_optimizer_step(kind)) {
      pending_.insert(id);
      return;
    }
    if (!is_source_[id] && growth_[id] <= 0) shrinking_.insert(id);
    if (!is_source_[id] || unblocks_[id]) willing_.insert(id);
  }

  NodeId pick() const {
    if (!shrinking_.empty()) return *shrinking_.begin();
    if (!willing_.empty()) return *willing_.begin();
    if (pending_.empty()) return *ready_.begin();
    // A node that reads nothing may be all that keeps others from running; waits for other ranks come last.
    std::optional<NodeId> source;
    for (const NodeId id : ready_) {
      if (graph_.nodes[id].kind() == OpKind::CollectiveWait) return *pending_.begin();
      if (!source && is_source_[id]) source = id;
    }
    return source.value_or(*pending_.begin());
  }

  const Graph& graph_;
  const Builder& builder_;
  std::vector<std::optional<NodeId>> producers_;
  std::vector<bool> in_place_;                ///< by value: written over a state
  double dynamic_scale_;                      ///< of the bytes of values with dynamic extents
  std::vector<size_t> edges_to_;              ///< by node
  std::vector<size_t> waits_;                 ///< by node: edges from nodes that have not run
  std::vector<std::vector<NodeId>> readers_;  ///< by node: its edges
  NodeId last_backward_ = 0;                  ///< the last node with an edge to an earlier one
  // Sums of ids: with one left, the sum is that one.
  std::vector<uint64_t> waiting_for_;  ///< by node: of those that it waits for
  std::vector<uint64_t> reading_;      ///< by value: of the nodes that read it and have not run
  std::vector<uint32_t> left_;         ///< by value: how many these are
  std::vector<bool> stays_;            ///< by value: an output, or the new value of a state
  std::vector<double> growth_;         ///< by node: by how much it adds to the live bytes
  std::vector<bool> is_source_;  ///< by node: reads nothing that another node computes, so it can run later
  std::vector<bool> unblocks_;   ///< by node: another one waits for nothing else
  bool steps_wait_ = false;      ///< optimizer steps are pending until there is a reason to run them
  double live_ = 0;              ///< bytes
  std::set<NodeId> ready_;
  std::set<NodeId> shrinking_;  ///< ready; adds nothing to the live bytes
  std::set<NodeId> willing_;    ///< ready; runs before those that nothing waits for
  std::set<NodeId> pending_;    ///< ready; optimizer steps that wait for others
};

std::vector<NodeId> best_sequence(Scheduler& scheduler) {
  Sequence early = scheduler.run();
  if (early.nodes.empty() || !scheduler.has_optimizer_steps()) return early.nodes;
  Sequence together = scheduler.run_steps_together(kUnlimited);
  if (early.peak > (1 - kLeastSaving) * together.peak) return together.nodes;
  Sequence groups = scheduler.run_steps_together(early.peak);
  return groups.peak > early.peak ? early.nodes : groups.nodes;
}

}  // namespace

Status order(Graph& graph, const PassContext& context) {
  RT_TRY(tidy(graph));
  const Builder builder(graph, &context.states);
  RT_TRY(Status(builder.status()));
  Scheduler with_states(graph, builder);
  with_states.add_state_edges();
  std::vector<NodeId> sequence = best_sequence(with_states);
  if (sequence.empty()) {
    Scheduler without_states(graph, builder);
    sequence = best_sequence(without_states);
  }
  std::vector<Node> nodes;
  nodes.reserve(sequence.size());
  for (NodeId id : sequence) nodes.push_back(std::move(graph.nodes[id]));
  graph.nodes = std::move(nodes);
  return {};
}

}  // namespace librt::compiler
