// common_subexpr: merges nodes with equal operator, attributes and inputs, and constants with the same bytes.
//
// Exact. States are merged only where they are the same state: equal initial values do not make them equal.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <unordered_map>

#include "runtime/ops/page.h"
#include "schema/ops_generated.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace librt::compiler {
namespace {

/// A fact of algebra that no other pass needs.
bool is_commutative(OpKind kind) {
  switch (kind) {
    case OpKind::Add:
    case OpKind::Mul:
    case OpKind::Equal:
    case OpKind::And:
    case OpKind::Or:
    case OpKind::Xor: return true;
    default: return false;
  }
}

/// Operator, attributes and inputs as bytes: equal for nodes that compute the same.
std::string key_of(const Node& node) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<flatbuffers::Table>(op::pack_op(node.op, builder).o));
  std::string key(1, static_cast<char>(node.kind()));
  std::vector<ValueId> inputs = node.inputs;
  if (is_commutative(node.kind())) std::sort(inputs.begin(), inputs.end());
  for (ValueId input : inputs) key.append(reinterpret_cast<const char*>(&input), sizeof input);
  key += static_cast<char>(node.outputs.size());
  key.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  return key;
}

void merge_sources(GraphEdit& edit, Graph& graph) {
  std::unordered_multimap<size_t, ValueId> constants;
  std::map<uint32_t, ValueId> states;
  // An update names its state by a value: that one is kept.
  std::vector<bool> updated(graph.values.size());
  for (const StateUpdate& update : graph.state_updates) updated[update.state] = true;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph[id];
    if (value.role == Role::State) {
      const auto [entry, fresh] = states.try_emplace(value.state, id);
      if (!fresh && !updated[id]) edit.replace(id, entry->second);
    }
    if (value.role != Role::Constant || value.quantization || edit.use_count(id) == 0) continue;
    const std::string_view bytes(reinterpret_cast<const char*>(value.data.data), value.data.size);
    const size_t hash = std::hash<std::string_view>()(bytes) + static_cast<size_t>(value.dtype);
    const auto [first, last] = constants.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& entry) {
      const Value& other = graph[entry.second];
      return other.dtype == value.dtype && other.dims == value.dims &&
             (bytes.empty() || other.data.data == value.data.data ||
              std::memcmp(other.data.data, value.data.data, bytes.size()) == 0);
    });
    if (same != last)
      edit.replace(id, same->second);
    else
      constants.emplace(hash, id);
  }
}

}  // namespace

Status common_subexpr(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  RT_TRY(Status(edit.status()));
  merge_sources(edit, graph);
  std::unordered_map<std::string, NodeId> seen;
  const NodeId count = edit.node_count();
  for (NodeId id = 0; id < count; ++id) {
    if (!edit.is_alive(id)) continue;
    const Node& node = edit.node(id);
    const ops::Page* page = ops::page_of(node.kind());
    if (page == nullptr || page->impure || !node.bodies.empty()) continue;
    const auto [entry, fresh] = seen.try_emplace(key_of(node), id);
    if (fresh) continue;
    const std::vector<ValueId> duplicates = node.outputs;
    const std::vector<ValueId> originals = edit.node(entry->second).outputs;
    // Each graph output needs a value of its own; copying one would gain little.
    if (std::any_of(duplicates.begin(), duplicates.end(),
                    [&](ValueId value) { return edit.is_output(value); }))
      continue;
    for (size_t i = 0; i < duplicates.size(); ++i) edit.replace(duplicates[i], originals[i]);
  }
  return edit.finish();
}

}  // namespace librt::compiler
