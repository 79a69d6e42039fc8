#include "runtime/graph/graph.h"

#include <algorithm>
#include <cstring>

namespace librt {

Blob Blob::own(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  Blob blob;
  blob.data = owner->data();
  blob.size = owner->size();
  blob.owner = std::move(owner);
  return blob;
}

Blob Blob::copy_of(const void* bytes, size_t size) {
  const auto* first = static_cast<const std::byte*>(bytes);
  return own(std::vector<std::byte>(first, first + size));
}

bool Value::is_static() const noexcept {
  return std::ranges::all_of(dims, [](const Dim& dim) { return dim.is_known(); });
}

TensorInfo Value::info() const noexcept {
  TensorInfo info{.dtype = dtype, .shape = {}};
  for (const Dim& dim : dims) info.shape.push_back(dim.extent);
  return info;
}

ValueId Graph::add_value(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

int32_t Graph::symbol(std::string_view symbol_name) {
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i].name == symbol_name) return static_cast<int32_t>(i);
  symbols.push_back({.name = std::string(symbol_name)});
  return static_cast<int32_t>(symbols.size() - 1);
}

ValueId Graph::add_constant(std::string value_name, const TensorInfo& info, Blob data) {
  Value value{.name = std::move(value_name), .dtype = info.dtype, .role = Role::Constant};
  for (int64_t extent : info.shape) value.dims.push_back({.extent = extent});
  value.data = std::move(data);
  return add_value(std::move(value));
}

std::vector<std::optional<NodeId>> producers(const Graph& graph) {
  std::vector<std::optional<NodeId>> by_value(graph.values.size());
  for (NodeId node = 0; node < graph.nodes.size(); ++node)
    for (ValueId output : graph.nodes[node].outputs)
      if (output != kNoValue) by_value[output] = node;
  return by_value;
}

std::vector<uint32_t> use_counts(const Graph& graph) {
  std::vector<uint32_t> counts(graph.values.size());
  for (const Node& node : graph.nodes)
    for (ValueId input : node.inputs)
      if (input != kNoValue) ++counts[input];
  for (ValueId output : graph.outputs) ++counts[output];
  for (const StateUpdate& update : graph.state_updates) ++counts[update.value];
  return counts;
}

namespace {
template <class Entries>
auto* find_entry(Entries& entries, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(entries, [&](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &found->graph;
}
}  // namespace

const Graph* ModelGraph::entry(std::string_view name) const noexcept {
  return find_entry(entries, name);
}
Graph* ModelGraph::entry(std::string_view name) noexcept {
  return find_entry(entries, name);
}

}  // namespace librt
