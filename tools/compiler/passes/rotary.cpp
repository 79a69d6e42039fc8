// rotary: finds rotary position embeddings that a model spells out:
//   Concat(a cos - b sin, a sin + b cos) over halves (a, b) of the last axis, or over pairs that are its last
//   axis; x cos + Concat(-b, a) sin, where both halves of the tables are known to be equal.
//
// The axes before the last are taken as batch, heads and positions by where the tables repeat. Reassociates.
#include <algorithm>
#include <array>

#include "tools/compiler/passes/movement.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

/// x [.., D] is rotated by tables [.., D / 2], whose other axes broadcast to x's.
struct Rotation {
  ValueId x = kNoValue, cos = kNoValue, sin = kNoValue;
  bool interleaved = false;
};

Shape shape_of(GraphEdit& edit, ValueId value) {
  return edit.builder().comparable_shape(value);
}

/// A piece [start, end) of a value's last axis, in steps of 1; the extent of that axis is known.
struct Piece {
  ValueId x = kNoValue;
  int64_t start = 0, end = 0, whole = 0;
};
std::optional<Piece> piece_of(GraphEdit& edit, ValueId value) {
  const Node* slice = edit.producer(value, OpKind::Slice);
  if (slice == nullptr) return std::nullopt;
  const auto& attributes = slice->as<op::SliceAttributes>();
  const auto start = edit.ints(slice->inputs[1]), end = edit.ints(slice->inputs[2]);
  const std::vector<Dim>& dims = edit.value(slice->inputs[0]).dims;
  const bool last =
      attributes.axes.size() == 1 && !dims.empty() && dims.back().is_known() &&
      normalized_axis(attributes.axes[0], static_cast<int>(dims.size())) == static_cast<int>(dims.size()) - 1;
  if (!last || !start || !end || (!attributes.steps.empty() && attributes.steps[0] != 1)) return std::nullopt;
  const int64_t whole = dims.back().extent;
  const auto inside = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + whole : at, 0, whole); };
  return Piece{slice->inputs[0], inside((*start)[0]), inside((*end)[0]), whole};
}

/// Whether a and b are the first and the second half of one value.
bool are_halves(GraphEdit& edit, ValueId a, ValueId b) {
  const auto first = piece_of(edit, a), second = piece_of(edit, b);
  return first && second && first->x == second->x && first->start == 0 && 2 * first->end == first->whole &&
         second->start == first->end && second->end == first->whole;
}

bool concatenates_last_axis(GraphEdit& edit, const Node& concat) {
  const int rank = edit.value(concat.outputs[0]).rank();
  return concat.inputs.size() == 2 &&
         normalized_axis(concat.as<op::ConcatAttributes>().axis, rank) == rank - 1;
}

/// The other factor of a product with x.
ValueId factor_beside(GraphEdit& edit, ValueId product, ValueId x) {
  const Node* mul = edit.producer(product, OpKind::Mul);
  if (mul == nullptr || mul->inputs[0] == mul->inputs[1]) return kNoValue;
  return mul->inputs[0] == x ? mul->inputs[1] : mul->inputs[1] == x ? mul->inputs[0] : kNoValue;
}

// --- Concat(a cos - b sin, a sin + b cos)

std::optional<Rotation> of_pairs(GraphEdit& edit, NodeId root, Interior& interior) {
  const Node concat = edit.node(root);
  if (!concatenates_last_axis(edit, concat)) return std::nullopt;
  const Node* real = edit.producer(concat.inputs[0], OpKind::Sub);
  const Node* imaginary = edit.producer(concat.inputs[1], OpKind::Add);
  if (real == nullptr || imaginary == nullptr) return std::nullopt;
  const Node *a_cos = edit.producer(real->inputs[0], OpKind::Mul),
             *b_sin = edit.producer(real->inputs[1], OpKind::Mul);
  if (a_cos == nullptr || b_sin == nullptr) return std::nullopt;
  for (size_t i = 0; i < 4; ++i) {
    const ValueId a = a_cos->inputs[i / 2], cos = a_cos->inputs[1 - i / 2];
    const ValueId b = b_sin->inputs[i % 2], sin = b_sin->inputs[1 - i % 2];
    if (!are_halves(edit, a, b) || !edit.same_info(cos, sin)) continue;
    for (size_t k = 0; k < 2; ++k) {
      const ValueId a_sin = imaginary->inputs[k], b_cos = imaginary->inputs[1 - k];
      if (factor_beside(edit, a_sin, a) != sin || factor_beside(edit, b_cos, b) != cos) continue;
      for (ValueId inner :
           {concat.inputs[0], concat.inputs[1], real->inputs[0], real->inputs[1], a_sin, b_cos})
        interior.push_back(edit.producer_id(inner));
      return Rotation{piece_of(edit, a)->x, cos, sin};
    }
  }
  return std::nullopt;
}

// --- x cos + Concat(-b, a) sin

/// Whether the two halves of the last axis are equal, whatever the data.
bool has_equal_halves(GraphEdit& edit, ValueId table, int depth = 8) {
  const Node* node = edit.producer(table);
  if (node == nullptr || depth == 0) return false;
  const auto same_last = [&](ValueId input) {
    const Shape from = shape_of(edit, input), to = shape_of(edit, table);
    if (from.rank() == 0 || to.rank() == 0 || from.back() != to.back()) return false;
    return has_equal_halves(edit, input, depth - 1);
  };
  // The operators of which exporters make tables of sines and cosines.
  switch (node->kind()) {
    case OpKind::Concat: return concatenates_last_axis(edit, *node) && node->inputs[0] == node->inputs[1];
    case OpKind::Sin:
    case OpKind::Cos:
    case OpKind::Cast:
    case OpKind::Identity:
    case OpKind::Reshape: return same_last(node->inputs[0]);
    case OpKind::Mul:
      for (size_t i = 0; i < 2; ++i)
        if (edit.uniform(node->inputs[i])) return same_last(node->inputs[1 - i]);
      return false;
    default: return false;
  }
}

ValueId first_half(GraphEdit& edit, ValueId table, int64_t half) {
  op::SliceAttributes attributes;
  attributes.axes = {edit.value(table).rank() - 1};
  attributes.steps = {1};
  Builder& builder = edit.builder();
  return edit.emit(std::move(attributes),
                   {table, builder.ints(std::array<int64_t, 1>{0}), builder.ints({&half, 1})});
}

std::optional<Rotation> of_halves(GraphEdit& edit, NodeId root, Interior& interior) {
  const Node add = edit.node(root);
  for (size_t i = 0; i < 2; ++i) {
    const Node* rotated = edit.producer(add.inputs[1 - i], OpKind::Mul);
    for (size_t k = 0; rotated != nullptr && k < 2; ++k) {
      const Node* concat = edit.producer(rotated->inputs[k], OpKind::Concat);
      if (concat == nullptr || !concatenates_last_axis(edit, *concat)) continue;
      const Node* neg = edit.producer(concat->inputs[0], OpKind::Neg);
      if (neg == nullptr || !are_halves(edit, concat->inputs[1], neg->inputs[0])) continue;
      const Piece piece = *piece_of(edit, neg->inputs[0]);
      const ValueId sin = rotated->inputs[1 - k], cos = factor_beside(edit, add.inputs[i], piece.x);
      if (cos == kNoValue || !edit.same_info(cos, sin) || !has_equal_halves(edit, cos) ||
          !has_equal_halves(edit, sin))
        continue;
      for (ValueId inner : {add.inputs[0], add.inputs[1], rotated->inputs[k], concat->inputs[0]})
        interior.push_back(edit.producer_id(inner));
      return Rotation{piece.x, first_half(edit, cos, piece.whole / 2),
                      first_half(edit, sin, piece.whole / 2)};
    }
  }
  return std::nullopt;
}

// --- axes

/// Which axes before the last are batch [0, heads), heads [heads, positions) and positions [positions, ..).
struct Axes {
  size_t heads = 0, positions = 0, end = 0;
  bool shared = false;  ///< the batch's axis is 1 in the tables
};

/// The tables have x's extents along batch and positions and 1 along heads; an axis they lack counts as 1.
std::optional<Axes> axes_of(GraphEdit& edit, ValueId x, ValueId table, size_t leading) {
  std::vector<bool> full(leading);
  const Shape all = shape_of(edit, x), own = shape_of(edit, table);
  for (size_t axis = 0; axis < leading; ++axis) {
    const int at = static_cast<int>(axis) + own.rank() - all.rank();
    const int64_t extent = at < 0 ? 1 : own[at];
    if (extent != 1 && extent != all[static_cast<int>(axis)]) return std::nullopt;
    full[axis] = extent != 1;
  }
  Axes axes{.end = leading};
  while (axes.heads < leading && full[axes.heads]) ++axes.heads;
  axes.positions = axes.heads;
  while (axes.positions < leading && !full[axes.positions]) ++axes.positions;
  for (size_t axis = axes.positions; axis < leading; ++axis)
    if (!full[axis]) return std::nullopt;
  // All batches read the same rows; the first axis stays separate.
  axes.shared = axes.heads == 0;
  if (axes.shared && axes.positions >= 2) axes.heads = 1;
  return axes;
}

/// The product of extents, -1 where one is not static.
int64_t extent_of(GraphEdit& edit, ValueId x, size_t first, size_t last) {
  int64_t product = 1;
  for (size_t axis = first; axis < last; ++axis) {
    const Dim& dim = edit.value(x).dims[axis];
    if (!dim.is_known()) return -1;
    product *= dim.extent;
  }
  return product;
}

/// Reshapes `value`, which may lack x's first axes, to batch, heads and positions: by its own extents, or by
/// constants where several axes are merged. nullopt: more than one of these would not be static.
std::optional<ValueId> regrouped(GraphEdit& edit, ValueId value, const Axes& axes, size_t rank, bool table,
                                 int64_t width) {
  struct Group {
    size_t first, last;
    bool one;
  };
  std::vector<Group> groups = {{0, axes.heads, axes.heads == 0 || (table && axes.shared)},
                               {axes.heads, axes.positions, axes.heads == axes.positions},
                               {axes.positions, axes.end, axes.positions == axes.end}};
  if (table) groups.erase(groups.begin() + 1);
  const size_t missing = rank - edit.value(value).dims.size();
  const size_t last = edit.value(value).dims.size() - 1;
  std::vector<Extents> extents;
  std::vector<int64_t> numbers;
  bool single = edit.value(value).dims[last].is_known() && edit.value(value).dims[last].extent == width;
  for (const Group& group : groups) {
    single = single && (group.one || group.last == group.first + 1);
    if (group.one) {
      extents.push_back({kNoValue, 0, 1});
      numbers.push_back(1);
    } else {
      extents.push_back({value, group.first - missing, group.last - missing});
      numbers.push_back(extent_of(edit, value, group.first - missing, group.last - missing));
    }
  }
  extents.push_back({value, last, last + 1});
  numbers.push_back(width);
  if (single && !table && rank == 4) return value;
  if (single) return reshape_to(edit, value, extents);
  if (std::count(numbers.begin(), numbers.end(), -1) > 1 || std::count(numbers.begin(), numbers.end(), 0) > 0)
    return std::nullopt;
  return edit.emit(op::ReshapeAttributes{}, {value, edit.builder().ints(numbers)});
}

void rewrite(GraphEdit& edit, NodeId root, const Rotation& rotation) {
  const ValueId old = edit.node(root).outputs[0];
  // Pairs as the last axis: [.., P, 2] with tables [.., P, 1].
  const std::vector<Dim> dims = edit.value(rotation.x).dims, table = edit.value(rotation.cos).dims;
  if (dims.size() < 2 || table.size() > dims.size() || table.empty()) return;
  const bool pairs = dims.back().extent == 2 && table.back().extent == 1 && table.size() > 1 &&
                     dims[dims.size() - 2].is_known() &&
                     dims[dims.size() - 2].extent == table[table.size() - 2].extent;
  const int64_t width = pairs ? 2 * dims[dims.size() - 2].extent : dims.back().extent;
  if (width <= 0 || (!pairs && table.back().extent != width / 2)) return;
  const auto axes = axes_of(edit, rotation.x, rotation.cos, dims.size() - (pairs ? 2 : 1));
  if (!axes) return;
  edit.name_after(root);
  const auto x = regrouped(edit, rotation.x, *axes, dims.size(), false, width);
  const auto cos = regrouped(edit, rotation.cos, *axes, dims.size(), true, width / 2);
  const auto sin = regrouped(edit, rotation.sin, *axes, dims.size(), true, width / 2);
  if (!x || !cos || !sin) return;
  op::RotaryEmbeddingAttributes attributes;
  attributes.interleaved = pairs;
  const ValueId y = edit.emit(attributes, {*x, *cos, *sin});
  const ValueId result = *x == rotation.x ? y : reshape_to(edit, y, {{rotation.x, 0, dims.size()}});
  if (result != kNoValue) edit.replace(old, result);
}

void recognize_rotary(GraphEdit& edit, NodeId root) {
  if (edit.value(edit.node(root).outputs[0]).dtype != DType::F32) return;
  Interior interior;
  const auto rotation = edit.node(root).kind() == OpKind::Concat ? of_pairs(edit, root, interior)
                                                                 : of_halves(edit, root, interior);
  if (rotation && is_closed(edit, root, interior)) rewrite(edit, root, *rotation);
}

}  // namespace

Status rotary(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  const NodeId count = edit.node_count();
  for (NodeId id = 0; id < count && edit.status().ok(); ++id)
    if (edit.is_alive(id, OpKind::Concat) || edit.is_alive(id, OpKind::Add)) recognize_rotary(edit, id);
  return edit.finish();
}

}  // namespace librt::compiler
