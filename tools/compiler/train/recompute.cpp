#include "tools/compiler/train/recompute.h"

#include <algorithm>
#include <set>

#include "runtime/graph/verify.h"
#include "runtime/ops/control.h"
#include "runtime/ops/page.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler {
namespace {

/// At most this many nodes are recomputed for one value.
constexpr size_t kMostNodes = 32;
/// Moving one byte costs as much as this many operations.
constexpr double kFlopsPerByte = 4;
/// A state of at most this many bytes may be copied for a late reader; a larger one is written in place.
constexpr size_t kSmallState = 64;

bool is_alias(const Node& node) {
  return node.kind() == OpKind::Reshape || node.kind() == OpKind::Identity;
}

bool can_run_again(const Node& node) {
  if (ops::is_control(node.kind())) return false;
  const bool is_random = node.kind() == OpKind::RandomUniform || node.kind() == OpKind::RandomNormal;
  const ops::Page* page = ops::page_of(node.kind());
  return is_random ? node.inputs.size() == 2 : page != nullptr && !page->impure;
}

class Recomputer {
 public:
  Recomputer(Graph& graph, const std::vector<State>& states) : graph_(graph), states_(states) {}

  /// concrete: the same graph at the extents.
  RecomputeReport run(const Graph& concrete, const Builder& builder, uint64_t live_bytes) {
    const std::vector<bool> in_place = updated_in_place(concrete, producers(concrete));
    for (ValueId id = 0; id < concrete.values.size(); ++id)
      bytes_.push_back(in_place[id] ? 0 : (builder.example_info(id).bytes() + 63) / 64 * 64);
    for (const Node& node : concrete.nodes) costs_.push_back(cost_of(node, builder));
    for (const auto& [flops, cost] : costs_) report_.flops += flops;
    find_lifetimes();
    report_.live_before = live_[peak_];
    const size_t most_nodes = 4 * graph_.nodes.size();
    while (live_[peak_] > live_bytes && graph_.nodes.size() < most_nodes && improve()) find_lifetimes();
    report_.live_after = live_[peak_];
    return report_;
  }

 private:
  struct Cost {
    double flops = 0, all = 0;
  };
  /// One value that is recomputed before `before`, for it and all later readers.
  struct Choice {
    ValueId value = kNoValue;
    size_t before = 0;
    std::vector<size_t> nodes;  ///< positions of the nodes to recompute, in order
    double gain = 0;
  };

  static Cost cost_of(const Node& node, const Builder& builder) {
    const ops::Cost cost = builder.example_cost(node);
    return {cost.flops, cost.flops + kFlopsPerByte * cost.bytes + 1};
  }

  ValueId root(ValueId id) const { return roots_[id]; }

  /// An alias shares the lifetime of the value whose bytes it has.
  void find_lifetimes() {
    const size_t nodes = graph_.nodes.size();
    made_.assign(graph_.values.size(), nodes);
    uses_.assign(graph_.values.size(), {});
    roots_.resize(graph_.values.size());
    for (ValueId id = 0; id < roots_.size(); ++id) roots_[id] = id;
    for (size_t at = 0; at < nodes; ++at) {
      const Node& node = graph_.nodes[at];
      for (ValueId output : node.outputs) made_[output] = at;
      if (is_alias(node) && graph_[root(node.inputs[0])].role == Role::Intermediate)
        roots_[node.outputs[0]] = root(node.inputs[0]);
      else
        for (ValueId input : node.inputs)
          if (input != kNoValue && (uses_[root(input)].empty() || uses_[root(input)].back() != at))
            uses_[root(input)].push_back(at);
    }
    for (ValueId output : graph_.outputs) uses_[root(output)].push_back(nodes);
    written_.assign(states_.size(), nodes);
    for (const StateUpdate& update : graph_.state_updates) {
      uses_[root(update.value)].push_back(nodes);
      if (made_[update.value] < nodes) written_[graph_[update.state].state] = made_[update.value];
    }
    std::vector<int64_t> change(nodes + 1);
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (root(id) != id || made_[id] == nodes) continue;
      change[made_[id]] += static_cast<int64_t>(bytes_[id]);
      if (last_use(id) + 1 <= nodes) change[last_use(id) + 1] -= static_cast<int64_t>(bytes_[id]);
    }
    live_.assign(std::max<size_t>(nodes, 1), 0);
    int64_t live = 0;
    for (size_t at = 0; at < nodes; ++at) live_[at] = static_cast<uint64_t>(live += change[at]);
    peak_ = static_cast<size_t>(std::max_element(live_.begin(), live_.end()) - live_.begin());
  }

  size_t last_use(ValueId id) const { return uses_[id].empty() ? made_[id] : uses_[id].back(); }

  /// Whether the value can be read at this position without recomputation.
  bool is_there(ValueId id, size_t at) const {
    const Value& value = graph_[root(id)];
    if (value.role == Role::State)
      return written_[value.state] >= at || states_[value.state].info.bytes() <= kSmallState;
    return value.role != Role::Intermediate || last_use(root(id)) >= at;
  }

  /// Collects the nodes to recompute so that the value is there; false when that is impossible or too much.
  bool collect(ValueId id, size_t at, std::set<size_t>& nodes) const {
    const size_t position = made_[id];
    const Node& node = graph_.nodes[position];
    if (!can_run_again(node)) return false;
    if (!nodes.insert(position).second) return true;
    if (nodes.size() > kMostNodes) return false;
    for (ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      if (is_alias_of_gone(input, at)) {
        if (!collect(input, at, nodes)) return false;
      } else if (!is_there(input, at)) {
        if (graph_[input].role != Role::Intermediate || !collect(input, at, nodes)) return false;
      }
    }
    return true;
  }
  bool is_alias_of_gone(ValueId id, size_t at) const { return root(id) != id && !is_there(id, at); }

  /// Frees the bytes of one value at the peak.
  bool improve() {
    Choice best;
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (root(id) != id || bytes_[id] == 0 || graph_[id].role != Role::Intermediate) continue;
      if (made_[id] >= peak_ || last_use(id) <= peak_ || last_use(id) == graph_.nodes.size()) continue;
      const auto next = std::lower_bound(uses_[id].begin(), uses_[id].end(), peak_);
      if (next == uses_[id].end() || *next == peak_) continue;
      std::set<size_t> nodes;
      if (!collect(id, *next, nodes)) continue;
      double cost = 0;
      uint64_t transient = 0;
      for (size_t node : nodes) {
        cost += costs_[node].all;
        for (ValueId output : graph_.nodes[node].outputs)
          if (root(output) == output && output != id) transient += bytes_[output];
      }
      // The recomputation must fit below the current peak.
      if (live_[*next] + transient >= live_[peak_]) continue;
      const double gain = static_cast<double>(bytes_[id]) / cost;
      if (gain > best.gain)
        best = {.value = id, .before = *next, .nodes = {nodes.begin(), nodes.end()}, .gain = gain};
    }
    if (best.value == kNoValue) return false;
    apply(best);
    return true;
  }

  void apply(const Choice& choice) {
    std::map<ValueId, ValueId> again;
    std::vector<Node> nodes;
    std::vector<Cost> costs;
    const auto run_again = [&](size_t position) {
      Node node = graph_.nodes[position];
      append(node.name, text(".again", ++count_));
      for (ValueId& input : node.inputs)
        if (const auto found = again.find(input); found != again.end()) input = found->second;
      for (ValueId& output : node.outputs) {
        Value value = graph_[output];
        append(value.name, text(".again", count_));
        again[output] = graph_.add_value(std::move(value));
        bytes_.push_back(bytes_[output]);
        output = again[output];
      }
      report_.added_flops += costs_[position].flops;
      costs.push_back(costs_[position]);
      nodes.push_back(std::move(node));
    };
    for (size_t position : choice.nodes) run_again(position);
    // Later readers may see the value by another shape.
    for (size_t at = 0; at < choice.before; ++at) {
      const Node& node = graph_.nodes[at];
      if (!is_alias(node) || root(node.outputs[0]) != choice.value || again.contains(node.outputs[0]))
        continue;
      if (again.contains(node.inputs[0]) && is_read_from(node.outputs[0], choice.before)) run_again(at);
    }
    for (size_t at = choice.before; at < graph_.nodes.size(); ++at)
      for (ValueId& input : graph_.nodes[at].inputs)
        if (input != kNoValue && root(input) == choice.value)
          if (const auto found = again.find(input); found != again.end()) input = found->second;
    const auto where = static_cast<std::ptrdiff_t>(choice.before);
    report_.nodes += nodes.size();
    graph_.nodes.insert(graph_.nodes.begin() + where, std::make_move_iterator(nodes.begin()),
                        std::make_move_iterator(nodes.end()));
    costs_.insert(costs_.begin() + where, costs.begin(), costs.end());
  }

  bool is_read_from(ValueId id, size_t first) const {
    for (size_t at = first; at < graph_.nodes.size(); ++at)
      if (const auto& inputs = graph_.nodes[at].inputs; std::count(inputs.begin(), inputs.end(), id) > 0)
        return true;
    return false;
  }

  Graph& graph_;
  const std::vector<State>& states_;
  RecomputeReport report_;
  std::vector<size_t> bytes_;  ///< by value
  std::vector<Cost> costs_;    ///< by node
  std::vector<size_t> made_;   ///< by value: the position of its node, or the number of nodes if none
  std::vector<std::vector<size_t>> uses_;  ///< by root: positions, sorted
  std::vector<ValueId> roots_;
  std::vector<size_t> written_;  ///< by state
  std::vector<uint64_t> live_;   ///< by position
  size_t peak_ = 0;
  size_t count_ = 0;
};

}  // namespace

Result<RecomputeReport> recompute(Graph& graph, const std::vector<State>& states,
                                  const std::map<std::string, int64_t>& extents, uint64_t live_bytes) {
  ModelGraph concrete;
  concrete.states = states;
  concrete.entries.push_back({.name = graph.name, .graph = graph});
  for (const Symbol& symbol : graph.symbols)
    if (const auto extent = extents.find(symbol.name); extent != extents.end())
      RT_TRY(bind_symbol(concrete, symbol.name, extent->second));
  Graph& at_extents = concrete.entries[0].graph;
  const Builder builder(at_extents, &states);
  RT_TRY(Status(builder.status()));
  if (at_extents.values.size() != graph.values.size() || at_extents.nodes.size() != graph.nodes.size())
    return internal_error("recompute: the graph at its extents has other nodes");
  Graph changed = graph;
  RecomputeReport report = Recomputer(changed, states).run(at_extents, builder, live_bytes);
  RT_TRY(verify(changed, &states).in("recompute"));
  graph = std::move(changed);
  return report;
}

}  // namespace librt::compiler
