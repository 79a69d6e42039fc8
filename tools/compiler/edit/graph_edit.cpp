#include "tools/compiler/edit/graph_edit.h"

#include <algorithm>

#include "runtime/core/element.h"
#include "runtime/graph/node_view.h"

namespace librt::compiler {
namespace {

/// Larger constants are not checked for being uniform.
constexpr int64_t kUniformElements = 1 << 16;

/// Operators with uninformative names: a MatMul does not take the name of the Transpose that it made
/// redundant.
bool has_uninformative_name(OpKind kind) {
  return kind == OpKind::Identity || kind == OpKind::Cast || kind == OpKind::Reshape ||
         kind == OpKind::Transpose;
}

/// Depth-first from the required values; an explicit stack, since graphs may be deep.
class Sorter {
 public:
  explicit Sorter(const Graph& graph)
      : graph_(graph), producers_(librt::producers(graph)), mark_(graph.nodes.size()) {}

  Status need(ValueId value) {
    if (value == kNoValue || !producers_[value]) return {};
    std::vector<std::pair<NodeId, size_t>> stack{{*producers_[value], 0}};
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      const Node& node = graph_.nodes[id];
      if (mark_[id] == kDone) {
        stack.pop_back();
        continue;
      }
      mark_[id] = kOpen;
      if (next == node.inputs.size()) {
        mark_[id] = kDone;
        order_.push_back(id);
        stack.pop_back();
        continue;
      }
      const ValueId input = node.inputs[next++];
      if (input == kNoValue || !producers_[input]) continue;
      const NodeId from = *producers_[input];
      if (mark_[from] == kOpen) return internal_error(describe(node), ": depends on itself");
      if (mark_[from] == kFresh) stack.emplace_back(from, 0);
    }
    return {};
  }
  bool is_needed(NodeId id) const { return mark_[id] == kDone; }
  const std::vector<NodeId>& order() const { return order_; }

 private:
  enum Mark : uint8_t { kFresh, kOpen, kDone };
  const Graph& graph_;
  std::vector<std::optional<NodeId>> producers_;
  std::vector<Mark> mark_;
  std::vector<NodeId> order_;
};

}  // namespace

void compact_values(Graph& graph) {
  std::vector<bool> used(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (ValueId input : node.inputs)
      if (input != kNoValue) used[input] = true;
    for (ValueId output : node.outputs) used[output] = true;
  }
  for (ValueId id : graph.inputs) used[id] = true;
  for (ValueId id : graph.outputs) used[id] = true;
  for (const StateUpdate& update : graph.state_updates) used[update.state] = used[update.value] = true;

  std::vector<ValueId> renumbered(graph.values.size(), kNoValue);
  std::vector<Value> kept;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    if (!used[id]) continue;
    renumbered[id] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[id]));
  }
  graph.values = std::move(kept);
  const auto renumber = [&](ValueId& id) {
    if (id != kNoValue) id = renumbered[id];
  };
  for (Node& node : graph.nodes) {
    std::for_each(node.inputs.begin(), node.inputs.end(), renumber);
    std::for_each(node.outputs.begin(), node.outputs.end(), renumber);
  }
  std::for_each(graph.inputs.begin(), graph.inputs.end(), renumber);
  std::for_each(graph.outputs.begin(), graph.outputs.end(), renumber);
  for (StateUpdate& update : graph.state_updates) {
    renumber(update.state);
    renumber(update.value);
  }
}

Status tidy(Graph& graph) {
  Sorter live(graph);
  for (ValueId output : graph.outputs) RT_TRY(live.need(output));
  for (const StateUpdate& update : graph.state_updates) RT_TRY(live.need(update.value));
  // A second walk over the live nodes in their present order keeps that order where it is valid.
  Sorter sorted(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (live.is_needed(id)) RT_TRY(sorted.need(graph.nodes[id].outputs[0]));
  std::vector<Node> nodes;
  nodes.reserve(sorted.order().size());
  for (NodeId id : sorted.order()) nodes.push_back(std::move(graph.nodes[id]));
  graph.nodes = std::move(nodes);
  compact_values(graph);
  return {};
}

GraphEdit::GraphEdit(Graph& graph, const std::vector<State>& states, InferenceCache* cache)
    : graph_(graph),
      cache_(cache),
      was_tidy_(cache != nullptr && cache->is_filled()),
      builder_(graph, &states, cache),
      first_new_(static_cast<NodeId>(graph.nodes.size())),
      first_new_value_(graph.values.size()) {
  readers_.resize(graph.values.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    outputs_[graph.outputs[i]].push_back(i);
    ++readers_[graph.outputs[i]].count;
  }
  for (size_t i = 0; i < graph.state_updates.size(); ++i) {
    updates_[graph.state_updates[i].value].push_back(i);
    ++readers_[graph.state_updates[i].value].count;
  }
  sync();
}

void GraphEdit::sync() {
  producers_.resize(graph_.values.size(), kNoNode);
  readers_.resize(graph_.values.size());
  dead_.resize(graph_.nodes.size());
  for (; indexed_ < graph_.nodes.size(); ++indexed_) {
    const auto id = static_cast<NodeId>(indexed_);
    result_uses_.push_back(0);
    for (const ValueId output : graph_.nodes[id].outputs) {
      producers_[output] = id;
      result_uses_[id] += readers_[output].count;
    }
    first_uses_.push_back(static_cast<uint32_t>(uses_.size()));
    for (const ValueId input : graph_.nodes[id].inputs) {
      uses_.push_back({.user = id});
      if (input != kNoValue) add_use(input, static_cast<uint32_t>(uses_.size() - 1));
    }
  }
}

void GraphEdit::count(ValueId id, ptrdiff_t more) {
  readers_[id].count += static_cast<size_t>(more);
  if (producers_[id] != kNoNode) result_uses_[producers_[id]] += static_cast<size_t>(more);
}

void GraphEdit::add_use(ValueId id, uint32_t use) {
  Readers& readers = readers_[id];
  uses_[use].previous = readers.last;
  uses_[use].next = kEnd;
  (readers.last == kEnd ? readers.first : uses_[readers.last].next) = use;
  readers.last = use;
  count(id, 1);
}

void GraphEdit::remove_use(ValueId id, uint32_t use) {
  Readers& readers = readers_[id];
  const auto [user, previous, next] = uses_[use];
  (previous == kEnd ? readers.first : uses_[previous].next) = next;
  (next == kEnd ? readers.last : uses_[next].previous) = previous;
  count(id, -1);
}

bool GraphEdit::is_alive(NodeId id) {
  sync();
  return id < dead_.size() && !dead_[id];
}

NodeId GraphEdit::producer_id(ValueId id) {
  sync();
  return id == kNoValue ? kNoNode : producers_[id];
}

const Node* GraphEdit::producer(ValueId id) {
  const NodeId node = producer_id(id);
  return node == kNoNode ? nullptr : &graph_.nodes[node];
}

const Node* GraphEdit::producer(ValueId id, OpKind kind) {
  const Node* node = producer(id);
  return node != nullptr && node->kind() == kind ? node : nullptr;
}

std::vector<NodeId> GraphEdit::users(ValueId id) {
  sync();
  std::vector<NodeId> users;
  for (uint32_t use = readers_[id].first; use != kEnd; use = uses_[use].next)
    users.push_back(uses_[use].user);
  return users;
}

size_t GraphEdit::use_count(ValueId id) {
  sync();
  return readers_[id].count;
}

std::optional<double> GraphEdit::uniform(ValueId id) const {
  if (id == kNoValue) return std::nullopt;
  const auto known = builder_.known_value(id);
  if (!known || known->info.elements() == 0 || known->info.elements() > kUniformElements) return std::nullopt;
  const double first = load_element(known->data, known->info.dtype, 0);
  for (int64_t i = 1; i < known->info.elements(); ++i)
    if (load_element(known->data, known->info.dtype, i) != first) return std::nullopt;
  return first;
}

std::optional<std::vector<int64_t>> GraphEdit::ints(ValueId id) const {
  if (id == kNoValue) return std::nullopt;
  const auto known = builder_.known_value(id);
  if (!known || known->info.dtype != DType::I64) return std::nullopt;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < known->info.elements(); ++i)
    numbers.push_back(load_integer(known->data, DType::I64, i));
  return numbers;
}

std::optional<Shape> GraphEdit::shape(ValueId id) const {
  if (id == kNoValue || !value(id).is_static()) return std::nullopt;
  return value(id).info().shape;
}

bool GraphEdit::same_info(ValueId a, ValueId b) const {
  return builder_.same_info(a, b);
}

void GraphEdit::remove_if_unused(NodeId id) {
  std::vector<NodeId> stack{id};
  while (!stack.empty()) {
    const NodeId candidate = stack.back();
    stack.pop_back();
    if (dead_[candidate] || result_uses_[candidate] > 0) continue;
    dead_[candidate] = true;
    uint32_t use = first_uses_[candidate];
    for (const ValueId input : graph_.nodes[candidate].inputs) {
      if (input != kNoValue) {
        remove_use(input, use);
        if (producers_[input] != kNoNode) stack.push_back(producers_[input]);
      }
      ++use;
    }
  }
}

void GraphEdit::move_positions(Positions& positions, ValueId old, ValueId replacement) {
  auto moved = positions.extract(old);
  if (moved.empty()) return;
  const std::vector<size_t>& from = moved.mapped();
  std::vector<size_t>& to = positions[replacement];
  to.insert(to.end(), from.begin(), from.end());
  count(old, -static_cast<ptrdiff_t>(from.size()));
  count(replacement, static_cast<ptrdiff_t>(from.size()));
}

void GraphEdit::move_readers(ValueId old, ValueId replacement) {
  for (uint32_t use = readers_[old].first; use != kEnd;) {
    const auto [user, previous, next] = uses_[use];
    graph_.nodes[user].inputs[use - first_uses_[user]] = replacement;
    remove_use(old, use);
    add_use(replacement, use);
    use = next;
  }
}

void GraphEdit::replace(ValueId old, ValueId replacement) {
  if (old == replacement || replacement == kNoValue || !status().ok()) return;
  sync();
  if (!builder_.may_have_same_info(old, replacement)) {
    builder_.fail(internal_error("value '", value(old).name, "' is ", builder_.example_info(old),
                                 " but its replacement '", value(replacement).name, "' is ",
                                 builder_.example_info(replacement)));
    return;
  }
  const NodeId before = producers_[old];
  // An output of the graph has its own name and is produced by a node.
  ValueId outer = replacement;
  if (outputs_.contains(old)) {
    const bool taken = producers_[replacement] == kNoNode || outputs_.contains(replacement);
    if (taken && before != kNoNode && graph_.nodes[before].kind() == OpKind::Identity &&
        graph_.nodes[before].inputs[0] == replacement) {
      outer = old;  // it is already the Identity that is needed
    } else if (taken) {
      if (before != kNoNode) name_after(before);
      outer = emit(op::IdentityAttributes{}, {replacement});
      if (outer == kNoValue) return;
      sync();
    }
    if (outer != old) {
      graph_.values[outer].name = graph_.values[old].name;
      graph_.values[outer].quantization = graph_.values[old].quantization;
      for (const size_t position : outputs_[old]) graph_.outputs[position] = outer;
      move_positions(outputs_, old, outer);
    }
  }
  if (updates_.contains(old)) {
    for (const size_t position : updates_[old]) graph_.state_updates[position].value = replacement;
    move_positions(updates_, old, replacement);
  }
  const bool is_read = readers_[old].first != kEnd;
  move_readers(old, replacement);
  const NodeId after = producers_[replacement];
  if (before != kNoNode && outer != old) {
    remove_if_unused(before);
    // The new node takes the old one's name for profiles and messages.
    if (dead_[before] && after != kNoNode && after >= first_new_ && graph_.nodes[after].outputs.size() == 1 &&
        (has_uninformative_name(graph_.nodes[after].kind()) ||
         !has_uninformative_name(graph_.nodes[before].kind()))) {
      graph_.nodes[after].name = graph_.nodes[before].name;
      if (graph_.values[replacement].name != graph_.values[old].name && !is_output(replacement))
        graph_.values[replacement].name = graph_.values[old].name;
    }
  }
  if (outer != old || is_read) ++changes_;
}

void GraphEdit::set_input(NodeId id, size_t i, ValueId replacement) {
  if (replacement == kNoValue || !status().ok()) return;
  sync();
  const ValueId old = graph_.nodes[id].inputs[i];
  if (old == replacement || dead_[id]) return;
  graph_.nodes[id].inputs[i] = replacement;
  const auto use = static_cast<uint32_t>(first_uses_[id] + i);
  if (old != kNoValue) remove_use(old, use);
  add_use(replacement, use);
  if (old != kNoValue && producers_[old] != kNoNode) remove_if_unused(producers_[old]);
  ++changes_;
}

Status GraphEdit::finish() {
  RT_TRY(Status(status()));
  const bool same =
      changes_ == 0 && graph_.nodes.size() == first_new_ && graph_.values.size() == first_new_value_;
  if (!same || !was_tidy_) RT_TRY(tidy(graph_));
  if (cache_ != nullptr && same && graph_.nodes.size() == first_new_ &&
      graph_.values.size() == first_new_value_)
    builder_.give_back(*cache_);
  return {};
}

std::vector<bool> updated_in_place(const Graph& graph, std::span<const std::optional<NodeId>> made_by) {
  std::vector<bool> in_place(graph.values.size());
  for (const StateUpdate& update : graph.state_updates) {
    if (!made_by[update.value]) continue;
    const std::vector<ValueId>& inputs = graph.nodes[*made_by[update.value]].inputs;
    in_place[update.value] = std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      return input != kNoValue && graph[input].role == Role::State &&
             graph[input].state == graph[update.state].state;
    });
  }
  for (const ValueId output : graph.outputs) in_place[output] = false;
  return in_place;
}

}  // namespace librt::compiler
