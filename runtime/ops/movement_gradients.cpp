// Gradients of data movement: every element goes back to its source. The operators are in movement.cpp.
//
// Extents may be symbolic, so bounds are computed with Shape nodes; where shapes are static they fold to
// constants.
#include <array>
#include <limits>

#include "runtime/ops/page_support.h"

namespace librt::ops {
namespace {

/// Extents [first, last) of x's shape as an i64 vector.
ValueId extents(Emitter& emit, ValueId x, int first, int last) {
  op::ShapeAttributes attributes;
  attributes.start = first;
  attributes.end = last;
  return emit.emit(attributes, {x});
}

ValueId int_vector(Emitter& emit, int64_t number) {
  const int64_t values[] = {number};
  return emit.ints(values);
}

ValueId concat(Emitter& emit, std::span<const ValueId> parts) {
  if (parts.size() == 1) return parts[0];
  op::ConcatAttributes attributes;
  attributes.axis = 0;
  return emit.emit_many(make_op(attributes), parts, 1)[0];
}

/// x[starts, ends) along one axis; starts and ends are i64 [1].
ValueId slice(Emitter& emit, ValueId x, ValueId start, ValueId end, int64_t axis, int64_t step = 1) {
  op::SliceAttributes attributes;
  attributes.axes = {axis};
  attributes.steps = {step};
  return emit.emit(std::move(attributes), {x, start, end});
}

/// Entry i of an i64 vector, as [1].
ValueId entry(Emitter& emit, ValueId vector, int64_t i) {
  return slice(emit, vector, int_vector(emit, i), int_vector(emit, i + 1), 0);
}

void identity_gradient(GradContext& context) {
  context.set(0, context.grad());
}

void reshape_gradient(GradContext& context) {
  context.set(0, context.emit.reshape(context.grad(), shape_value(context.emit, context.input(0))));
}

void transpose_gradient(GradContext& context) {
  const auto& permutation = context.node.as<op::TransposeAttributes>().permutation;
  std::vector<int64_t> inverse(permutation.size());  // empty: reversal, its own inverse
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  context.set(0, context.emit.transpose(context.grad(), std::move(inverse)));
}

void concat_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const int rank = emit.value(context.input(0)).rank();
  const auto axis = normalized_axis(context.node.as<op::ConcatAttributes>().axis, rank);
  if (!axis) return emit.fail(internal_error("expected an axis that was checked"));
  ValueId start = int_vector(emit, 0);
  for (size_t i = 0; i < context.node.inputs.size(); ++i) {
    const ValueId end = emit.add(start, extents(emit, context.input(i), *axis, *axis + 1));
    if (context.needs(i)) context.set(i, slice(emit, context.grad(), start, end, *axis));
    start = end;
  }
}

// With steps of 1 the gradient is padded by what was cut off. start and end may be outside x, and are clamped
// by slicing the axis' positions with them: before = |positions[0, start)|, after = the remainder.
void slice_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const auto& attributes = context.node.as<op::SliceAttributes>();
  const ValueId x = context.input(0), starts = context.input(1), ends = context.input(2);
  const int rank = emit.value(x).rank();
  const Dim named = emit.value(starts).dims[0];
  if (attributes.axes.empty() && !named.is_known())
    return emit.fail(
        unsupported("expected a known number of sliced axes to differentiate, found an unknown one"));
  const auto count = attributes.axes.empty() ? static_cast<size_t>(named.extent) : attributes.axes.size();
  bool unit = true;
  for (int64_t step : attributes.steps) unit = unit && step == 1;
  ValueId gradient = context.grad();
  std::vector<ValueId> pads(2 * static_cast<size_t>(rank), kNoValue);
  for (size_t i = 0; i < count; ++i) {
    const auto axis =
        normalized_axis(attributes.axes.empty() ? static_cast<int64_t>(i) : attributes.axes[i], rank);
    if (!axis) return emit.fail(internal_error("expected axes that were checked"));
    const int a = *axis;
    const auto at = static_cast<int64_t>(i);
    const ValueId all = positions(emit, x, static_cast<size_t>(a));
    const ValueId start = entry(emit, starts, at), extent = extents(emit, x, a, a + 1);
    if (unit) {
      const ValueId before = emit.shape_of(slice(emit, all, int_vector(emit, 0), start, 0));
      pads[static_cast<size_t>(a)] = before;
      pads[static_cast<size_t>(a + rank)] =
          emit.sub(emit.sub(extent, before), extents(emit, gradient, a, a + 1));
      continue;
    }
    const ValueId kept = slice(emit, all, start, entry(emit, ends, at), 0, attributes.steps[i]);
    std::vector<ValueId> shape;
    if (a > 0) shape.push_back(extents(emit, gradient, 0, a));
    shape.push_back(extent);
    if (a + 1 < rank) shape.push_back(extents(emit, gradient, a + 1, rank));
    op::ScatterAddAttributes scatter;
    scatter.axis = a;
    gradient = emit.emit(scatter, {concat(emit, shape), kept, gradient});
  }
  if (unit && count > 0) {
    for (ValueId& pad : pads)
      if (pad == kNoValue) pad = int_vector(emit, 0);
    gradient = emit.emit(op::PadAttributes{}, {gradient, concat(emit, pads)});
  }
  context.set(0, gradient);
}

// The source index in x of each position along a padded axis: the axis' positions, padded in the same way.
ValueId shown_positions(Emitter& emit, const op::PadAttributes& pad, ValueId x, ValueId pads, int axis) {
  const int rank = emit.value(x).rank();
  const std::array<int64_t, 2> ends{axis, rank + axis};
  op::CumSumAttributes count;
  count.exclusive = true;
  const ValueId ones =
      emit.emit(op::ExpandAttributes{}, {emit.scalar(1, DType::I64), extents(emit, x, axis, axis + 1)});
  return emit.emit(pad,
                   {emit.emit(count, {ones}), emit.emit(op::GatherAttributes{}, {pads, emit.ints(ends)})});
}

// Elements that padding repeats get the sum: axis by axis, in the order of the axes.
void repeating_pad_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const ValueId x = context.input(0), pads = context.input(1);
  const int rank = emit.value(x).rank();
  const Value& known = emit.value(pads);
  std::vector<bool> padded(static_cast<size_t>(rank), true);
  if (known.role == Role::Constant)
    for (int d = 0; d < rank; ++d)
      padded[static_cast<size_t>(d)] = load_integer(known.data.data, known.dtype, d) != 0 ||
                                       load_integer(known.data.data, known.dtype, rank + d) != 0;
  ValueId gradient = context.grad();
  for (int d = 0; d < rank; ++d) {
    if (!padded[static_cast<size_t>(d)]) continue;
    op::ConcatAttributes concat;
    concat.axis = 0;
    const ValueId shape =
        emit.emit(concat, {extents(emit, x, 0, d + 1), extents(emit, gradient, d + 1, rank)});
    op::ScatterAddAttributes add;
    add.axis = d;
    const ValueId positions = shown_positions(emit, context.node.as<op::PadAttributes>(), x, pads, d);
    gradient = emit.emit(add, {shape, positions, gradient});
  }
  context.set(0, gradient);
}

// Padding with the negated pads crops the padding and puts zeros where x was cropped.
void pad_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  if (context.node.as<op::PadAttributes>().mode != op::PadMode::Constant)
    return repeating_pad_gradient(context);
  const ValueId inside = emit.emit(op::PadAttributes{}, {context.grad(), emit.neg(context.input(1))});
  if (context.needs(0)) context.set(0, inside);
  if (!context.needs(2)) return;
  const ValueId border =
      emit.sub(emit.reduce_sum(context.grad(), {}, false), emit.reduce_sum(inside, {}, false));
  context.set(2, emit.reshape(border, shape_value(emit, context.input(2))));
}

void expand_gradient(GradContext& context) {
  context.set(0, context.grad());
}  // autodiff sums it to x's shape

/// Axis by axis: [.., repeat * extent, ..] as [.., repeat, extent, ..], summed over the repeats.
void tile_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const ValueId x = context.input(0), repeats = context.input(1);
  const int rank = emit.value(x).rank();
  const Value& known = emit.value(repeats);
  std::vector<bool> once(static_cast<size_t>(rank), false);
  if (known.role == Role::Constant)
    for (int i = 0; i < rank; ++i)
      once[static_cast<size_t>(i)] = load_integer(known.data.data, known.dtype, i) == 1;
  ValueId gradient = context.grad();
  for (int a = 0; a < rank; ++a) {
    if (once[static_cast<size_t>(a)]) continue;
    if (rank == kMaxRank)
      return emit.fail(
          unsupported("expected Tile of rank below ", kMaxRank, " to differentiate, found ", rank));
    std::vector<ValueId> shape;
    if (a > 0) shape.push_back(extents(emit, gradient, 0, a));
    shape.push_back(entry(emit, repeats, a));
    shape.push_back(extents(emit, x, a, a + 1));
    if (a + 1 < rank) shape.push_back(extents(emit, gradient, a + 1, rank));
    gradient = emit.reduce_sum(emit.reshape(gradient, concat(emit, shape)), {a}, false);
  }
  context.set(0, gradient);
}

}  // namespace

RT_COMPILER_PAGE(Identity) = {.gradient = identity_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(Reshape) = {.gradient = reshape_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(Transpose) = {.gradient = transpose_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(Concat) = {.gradient = concat_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(Slice) = {.gradient = slice_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(Pad) = {.gradient = pad_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(Expand) = {.gradient = expand_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(Tile) = {.gradient = tile_gradient, .tolerance = {0, 0}};

}  // namespace librt::ops
