#include "tools/compiler/edit/weight_layouts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "runtime/core/element.h"

namespace librt::compiler {
namespace {

/// Whether `to` is `from` with its axes permuted.
bool is_transpose(const Value& from, const Value& to, const std::vector<int64_t>& permutation) {
  const Shape shape = from.info().shape;
  const auto strides = strides_of(shape);
  const int rank = shape.rank();
  for (int axis = 0; axis < rank; ++axis)
    if (to.info().shape[axis] != shape[static_cast<int>(permutation[static_cast<size_t>(axis)])])
      return false;
  const size_t size = size_of(from.dtype);
  std::array<int64_t, kMaxRank> index{};
  for (int64_t i = 0, count = shape.elements(); i < count; ++i) {
    int64_t source = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const auto a = static_cast<size_t>(axis);
      source += index[a] * strides[static_cast<size_t>(permutation[a])];
    }
    if (std::memcmp(to.data.data + static_cast<size_t>(i) * size,
                    from.data.data + static_cast<size_t>(source) * size, size) != 0)
      return false;
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<size_t>(axis)] < to.info().shape[axis]) break;
      index[static_cast<size_t>(axis)] = 0;
    }
  }
  return true;
}

/// The identity first, if several are possible.
std::optional<std::vector<int64_t>> permutation_between(const Value& from, const Value& to) {
  std::vector<int64_t> permutation(from.dims.size());
  if (from.dtype != to.dtype || from.dims.size() != to.dims.size()) return std::nullopt;
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  do {
    if (is_transpose(from, to, permutation)) return permutation;
  } while (std::next_permutation(permutation.begin(), permutation.end()));
  return std::nullopt;
}

void replace_reads(Graph& graph, ValueId from, ValueId to) {
  for (Node& reader : graph.nodes)
    if (reader.kind() != OpKind::Shape) std::replace(reader.inputs.begin(), reader.inputs.end(), from, to);
}

}  // namespace

void unify_layouts(Graph& graph) {
  std::vector<bool> is_read(graph.values.size());
  for (const Node& node : graph.nodes)
    for (const ValueId input : node.inputs)
      if (input != kNoValue && node.kind() != OpKind::Shape) is_read[input] = true;
  std::map<std::string, std::vector<ValueId>> layouts;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (value.role == Role::Constant && is_float(value.dtype) && !value.name.empty() && is_read[id])
      layouts[value.name].push_back(id);
  }
  std::vector<Node> transposes;
  for (const auto& [name, ids] : layouts)
    for (const ValueId id : ids) {
      if (id == ids.back()) continue;
      const auto permutation = permutation_between(graph.values[ids.back()], graph.values[id]);
      if (!permutation) continue;
      if (std::is_sorted(permutation->begin(), permutation->end())) {
        replace_reads(graph, id, ids.back());
        continue;
      }
      Node node;
      node.name = text(name, ".transposed");
      for (size_t copy = 2; std::any_of(transposes.begin(), transposes.end(),
                                        [&](const Node& other) { return other.name == node.name; });
           ++copy)
        node.name = text(name, ".transposed.", copy);
      op::TransposeAttributes attributes;
      attributes.permutation = *permutation;
      node.op = make_op(std::move(attributes));
      node.inputs = {ids.back()};
      Value value = graph.values[id];
      value.role = Role::Intermediate;
      value.name = node.name;
      value.data = {};
      const ValueId made = graph.add_value(std::move(value));
      node.outputs = {made};
      replace_reads(graph, id, made);
      transposes.push_back(std::move(node));
    }
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(transposes.begin()),
                     std::make_move_iterator(transposes.end()));
}

}  // namespace librt::compiler
