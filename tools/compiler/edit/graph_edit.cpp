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

GraphEdit::GraphEdit(Graph& graph, const std::vector<State>& states)
    : graph_(graph), builder_(graph, &states), first_new_(static_cast<NodeId>(graph.nodes.size())) {
  sync();
}

void GraphEdit::sync() {
  producers_.resize(graph_.values.size(), kNoNode);
  users_.resize(graph_.values.size());
  dead_.resize(graph_.nodes.size());
  for (; indexed_ < graph_.nodes.size(); ++indexed_) {
    const auto id = static_cast<NodeId>(indexed_);
    for (ValueId input : graph_.nodes[id].inputs)
      if (input != kNoValue) users_[input].push_back(id);
    for (ValueId output : graph_.nodes[id].outputs) producers_[output] = id;
  }
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
  return users_[id];
}

bool GraphEdit::is_output(ValueId id) const {
  return std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end() ||
         std::any_of(graph_.state_updates.begin(), graph_.state_updates.end(),
                     [&](const StateUpdate& update) { return update.value == id; });
}

size_t GraphEdit::use_count(ValueId id) {
  sync();
  size_t count = users_[id].size();
  count += static_cast<size_t>(std::count(graph_.outputs.begin(), graph_.outputs.end(), id));
  for (const StateUpdate& update : graph_.state_updates) count += update.value == id;
  return count;
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

bool GraphEdit::may_replace(ValueId old, ValueId replacement) const {
  if (same_info(old, replacement)) return true;
  const Value& a = value(old);
  const Value& b = value(replacement);
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (size_t axis = 0; axis < a.dims.size(); ++axis) {
    if (a.dims[axis].is_known() && b.dims[axis].is_known() && a.dims[axis] != b.dims[axis]) return false;
    const auto at = [&](ValueId id, int probe) {
      return builder_.probe(id, probe).info.shape[static_cast<int>(axis)];
    };
    for (int probe = 0; probe < kProbes && !builder_.depends_on_data(); ++probe)
      if (at(old, probe) != at(replacement, probe)) return false;
  }
  return true;
}

void GraphEdit::drop_use(ValueId id, NodeId user) {
  if (id == kNoValue) return;
  auto& users = users_[id];
  const auto found = std::find(users.begin(), users.end(), user);
  if (found != users.end()) users.erase(found);
  if (producers_[id] != kNoNode) remove_if_unused(producers_[id]);
}

void GraphEdit::remove_if_unused(NodeId id) {
  std::vector<NodeId> stack{id};
  while (!stack.empty()) {
    const NodeId candidate = stack.back();
    stack.pop_back();
    const Node& node = graph_.nodes[candidate];
    if (dead_[candidate] ||
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return use_count(v) > 0; }))
      continue;
    dead_[candidate] = true;
    for (ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      std::erase(users_[input], candidate);
      if (producers_[input] != kNoNode) stack.push_back(producers_[input]);
    }
  }
}

void GraphEdit::replace(ValueId old, ValueId replacement) {
  if (old == replacement || replacement == kNoValue || !status().ok()) return;
  sync();
  if (!may_replace(old, replacement)) {
    const auto info = [&](ValueId id) { return builder_.probe(id, 0).info; };
    builder_.fail(internal_error("value '", value(old).name, "' is ", info(old), " but its replacement '",
                                 value(replacement).name, "' is ", info(replacement)));
    return;
  }
  const NodeId before = producers_[old];
  // An output of the graph has its own name and is produced by a node.
  ValueId outer = replacement;
  const bool names_output = std::count(graph_.outputs.begin(), graph_.outputs.end(), old) > 0;
  if (names_output) {
    const bool taken = producers_[replacement] == kNoNode ||
                       std::count(graph_.outputs.begin(), graph_.outputs.end(), replacement) > 0;
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
    }
    std::replace(graph_.outputs.begin(), graph_.outputs.end(), old, outer);
  }
  for (StateUpdate& update : graph_.state_updates)
    if (update.value == old) update.value = replacement;
  const std::vector<NodeId> readers = std::exchange(users_[old], {});
  for (NodeId reader : readers) {
    std::replace(graph_.nodes[reader].inputs.begin(), graph_.nodes[reader].inputs.end(), old, replacement);
    users_[replacement].push_back(reader);
  }
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
  if (outer != old || !readers.empty()) ++changes_;
}

void GraphEdit::set_input(NodeId id, size_t i, ValueId replacement) {
  if (replacement == kNoValue || !status().ok()) return;
  sync();
  const ValueId old = graph_.nodes[id].inputs[i];
  if (old == replacement) return;
  graph_.nodes[id].inputs[i] = replacement;
  users_[replacement].push_back(id);
  drop_use(old, id);
  ++changes_;
}

Status GraphEdit::finish() {
  RT_TRY(Status(status()));
  return tidy(graph_);
}

}  // namespace librt::compiler
