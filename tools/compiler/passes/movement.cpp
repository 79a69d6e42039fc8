#include "tools/compiler/passes/movement.h"

#include <algorithm>

namespace librt::compiler {

op::TransposeAttributes transpose_by(std::vector<int64_t> permutation) {
  op::TransposeAttributes attributes;
  attributes.permutation = std::move(permutation);
  return attributes;
}

bool is_identity(const std::vector<int64_t>& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::vector<int64_t> compose(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
  std::vector<int64_t> both;
  for (int64_t axis : second) both.push_back(first[static_cast<size_t>(axis)]);
  return both;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

bool keeps_order(const Value& x, const std::vector<int64_t>& permutation) {
  const int missing = static_cast<int>(permutation.size()) - x.rank();
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (axis < missing || x.dims[static_cast<size_t>(axis - missing)].extent == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::optional<std::vector<int64_t>> reshape_target(const Value& y) {
  std::vector<int64_t> target;
  int unknown = 0;
  bool empty = false;
  for (const Dim& dim : y.dims) {
    target.push_back(dim.is_known() ? dim.extent : -1);
    unknown += dim.is_known() ? 0 : 1;
    empty = empty || dim.extent == 0;
  }
  if (unknown > 1 || (unknown == 1 && empty)) return std::nullopt;
  return target;
}

void simplify_transpose(GraphEdit& edit, NodeId id) {
  const ValueId x = edit.node(id).inputs[0], y = edit.node(id).outputs[0];
  const std::vector<int64_t> permutation = edit.node(id).as<op::TransposeAttributes>().permutation;
  if (is_identity(permutation)) return edit.replace(y, x);
  if (const Node* inner = edit.producer(x, OpKind::Transpose)) {
    const std::vector<int64_t> both = compose(inner->as<op::TransposeAttributes>().permutation, permutation);
    const ValueId source = inner->inputs[0];
    if (is_identity(both)) return edit.replace(y, source);
    edit.rewrite(id, transpose_by(both), {source});
    return;
  }
  // Only axes of extent 1 move: the elements stay in order.
  if (!keeps_order(edit.value(x), permutation)) return;
  if (const auto target = reshape_target(edit.value(y)))
    edit.rewrite(id, op::ReshapeAttributes{}, {x, edit.builder().ints(*target)});
}

/// Whether no entry of the shape depends on data. Where one does, the result's extents are proven only for
/// shapes that the Reshape does not refuse.
static bool follows_from_extents(GraphEdit& edit, ValueId shape) {
  const Known& known = edit.builder().known(shape);
  return known.has_elements && std::none_of(known.elements.begin(), known.elements.end(),
                                            [](Extent entry) { return entry.is_unknown(); });
}

// A Reshape that may be invalid stays, so that the run reports it.
void simplify_reshape(GraphEdit& edit, NodeId id) {
  const ValueId x = edit.node(id).inputs[0], y = edit.node(id).outputs[0];
  const ValueId shape = edit.node(id).inputs[1];
  const bool is_valid = follows_from_extents(edit, shape);
  if (is_valid && edit.same_info(x, y)) return edit.replace(y, x);
  const Node* inner = edit.producer(x, OpKind::Reshape);
  if (inner != nullptr && edit.builder().same_elements(inner->inputs[0], x)) {
    edit.rewrite(id, op::ReshapeAttributes{}, {inner->inputs[0], shape});
    return;
  }
  if (!is_valid || edit.is_constant(shape) || !edit.builder().same_elements(x, y)) return;
  if (const auto target = reshape_target(edit.value(y))) edit.set_input(id, 1, edit.builder().ints(*target));
}

Names names_of(GraphEdit& edit, NodeId old) {
  return {.node = edit.node(old).name, .value = edit.value(edit.node(old).outputs[0]).name};
}

void keep_names(GraphEdit& edit, const Names& names, ValueId moved, ValueId movement) {
  const auto name = [&](ValueId value, std::string_view suffix) {
    if (value == kNoValue || edit.producer(value) == nullptr) return;
    Graph& graph = edit.builder().graph();
    graph.nodes[edit.producer_id(value)].name = text(names.node, suffix);
    if (!edit.is_output(value)) graph[value].name = text(names.value, suffix);
  };
  name(moved, "");
  name(movement, ".moved");
}

std::vector<int64_t> permutation_of(GraphEdit& edit, const Node& transpose) {
  std::vector<int64_t> permutation = transpose.as<op::TransposeAttributes>().permutation;
  if (permutation.empty())
    for (int64_t axis = edit.value(transpose.inputs[0]).rank(); axis-- > 0;) permutation.push_back(axis);
  return permutation;
}

ValueId permuted(GraphEdit& edit, ValueId x, std::vector<int64_t> permutation) {
  if (const Node* inner = edit.producer(x, OpKind::Transpose)) {
    permutation = compose(permutation_of(edit, *inner), permutation);
    x = inner->inputs[0];
  }
  return is_identity(permutation) ? x : edit.emit(transpose_by(std::move(permutation)), {x});
}

ValueId reshape_to(GraphEdit& edit, ValueId x, const std::vector<Extents>& shape) {
  std::vector<int64_t> numbers;
  std::vector<ValueId> parts;
  int unknown = 0;
  bool empty = false;
  for (const Extents& extents : shape)
    for (size_t axis = extents.first; axis < extents.last; ++axis) {
      const Dim dim = extents.source == kNoValue ? Dim{.extent = 1} : edit.value(extents.source).dims[axis];
      unknown += !dim.is_known();
      empty |= dim.is_known() && dim.extent == 0;
      numbers.push_back(dim.is_known() ? dim.extent : -1);
    }
  Builder& builder = edit.builder();
  if (unknown <= 1 && !(unknown == 1 && empty))
    return edit.emit(op::ReshapeAttributes{}, {x, builder.ints(numbers)});
  for (const Extents& extents : shape) {
    if (extents.first == extents.last) continue;
    if (extents.source == kNoValue) {
      parts.push_back(builder.ints(std::vector<int64_t>(extents.last - extents.first, 1)));
      continue;
    }
    op::ShapeAttributes attributes;
    attributes.start = static_cast<int64_t>(extents.first);
    attributes.end = static_cast<int64_t>(extents.last);
    parts.push_back(edit.emit(attributes, {extents.source}));
  }
  const ValueId target = parts.size() == 1 ? parts[0] : edit.emit(op::ConcatAttributes{}, parts);
  return edit.emit(op::ReshapeAttributes{}, {x, target});
}

}  // namespace librt::compiler
