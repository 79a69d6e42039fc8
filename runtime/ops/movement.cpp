// Identity, Reshape, Transpose, Concat, Slice, Pad, Expand and Tile: data movement without arithmetic.
#include <cstring>

#include "runtime/geometry/movement.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

using Offsets = std::vector<std::vector<int64_t>>;

void copy_all(const ConstTensorView& from, const TensorView& to) {
  if (to.info.bytes() != 0) std::memcpy(to.data, from.data, to.info.bytes());
}

/// One list of offsets per axis of `result`: position(axis, i) is where along the axis of `source` it reads.
template <class Position>
Offsets offsets_for(const Shape& result, const Shape& source, Position&& position) {
  const auto strides = strides_of(source);
  Offsets offsets(static_cast<size_t>(result.rank()));
  for (int axis = 0; axis < result.rank(); ++axis) {
    auto& list = offsets[static_cast<size_t>(axis)];
    list.resize(static_cast<size_t>(result[axis]));
    for (int64_t i = 0; i < result[axis]; ++i) {
      const int64_t at = position(axis, i);
      list[static_cast<size_t>(i)] = at < 0 ? kFill : at * strides[static_cast<size_t>(axis)];
    }
  }
  return offsets;
}

// --- Identity, Reshape
// ----------------------------------------------------------------------------------------

Status eval_copy(const NodeView&, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  copy_all(inputs[0], outputs[0]);
  return {};
}

/// Identity's shape is optional, and must be x's own.
Status infer_reshape(const NodeView& node, std::vector<TensorInfo>& outputs) {
  if (!node.has(1)) return infer_like_first(node, outputs);
  RT_ASSIGN(const auto shape, shape_operand(node, 1, "shape"));
  if (node.kind() == OpKind::Identity) RT_TRY(expect_shape(node, 0, "x", Shape(shape)));
  RT_ASSIGN(const Shape result, reshape_result(node.shape(0), shape));
  return add_output(outputs, node.dtype(0), result);
}

// --- Transpose
// ------------------------------------------------------------------------------------------------

/// An empty list reverses the axes, as in ONNX.
Result<std::vector<int>> permutation_of(const op::TransposeAttributes& attributes, int rank) {
  std::vector<int> permutation;
  if (attributes.permutation.empty()) {
    for (int i = rank - 1; i >= 0; --i) permutation.push_back(i);
    return permutation;
  }
  uint32_t seen = 0;  // bit i: axis i
  for (int64_t entry : attributes.permutation) {
    if (entry < 0 || entry >= rank || (seen >> entry & 1u) != 0)
      return invalid_argument("expected a permutation of 0 to ", rank - 1, ", found ", entry, " at position ",
                              permutation.size());
    seen |= 1u << entry;
    permutation.push_back(static_cast<int>(entry));
  }
  if (permutation.size() != static_cast<size_t>(rank))
    return invalid_argument("expected a permutation of ", rank, " axes, found ", permutation.size());
  return permutation;
}

Status infer_transpose(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const auto permutation, permutation_of(node.as<op::TransposeAttributes>(), node.shape(0).rank()));
  Shape result;
  for (int axis : permutation) result.push_back(node.shape(0)[axis]);
  return add_output(outputs, node.dtype(0), result);
}

Status eval_transpose(const NodeView& node, std::span<const ConstTensorView> inputs,
                      std::span<const TensorView> outputs) {
  const Shape& x = inputs[0].info.shape;
  RT_ASSIGN(const auto permutation, permutation_of(node.as<op::TransposeAttributes>(), x.rank()));
  const auto strides = strides_of(x);
  Offsets offsets(permutation.size());
  for (size_t axis = 0; axis < permutation.size(); ++axis)
    for (int64_t i = 0; i < x[permutation[axis]]; ++i)
      offsets[axis].push_back(i * strides[static_cast<size_t>(permutation[axis])]);
  copy_mapped(outputs[0], inputs[0].data, offsets);
  return {};
}

// --- Concat
// ---------------------------------------------------------------------------------------------------

Result<int> concat_axis(const NodeView& node) {
  return resolve_axis(node.as<op::ConcatAttributes>().axis, node.shape(0).rank());
}

Status infer_concat(const NodeView& node, std::vector<TensorInfo>& outputs) {
  for (size_t i = 0; i < node.input_count(); ++i)
    if (!node.has(i)) return invalid_argument("expected every input present, found input ", i, " absent");
  RT_ASSIGN(const int axis, concat_axis(node));
  Shape result = node.shape(0);
  for (size_t i = 1; i < node.input_count(); ++i) {
    RT_TRY(expect_same_dtype(node, i, text("input ", i), 0, "input 0"));
    Shape other = node.shape(i);
    if (other.rank() != result.rank())
      return invalid_argument("expected inputs of rank ", result.rank(), ", found ", other, " as input ", i);
    const int64_t extent = other[axis];
    other[axis] = result[axis];
    if (other != result)
      return invalid_argument("expected inputs that agree but on axis ", axis, ", found ", node.shape(0),
                              " and ", node.shape(i));
    if (__builtin_add_overflow(result[axis], extent, &result[axis]))
      return invalid_argument("expected a result of less than " RT_MOST_ELEMENTS " elements, found more");
  }
  return add_output(outputs, node.dtype(0), result);
}

Status eval_concat(const NodeView& node, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  RT_ASSIGN(const int axis, concat_axis(node));
  const TensorInfo& result = outputs[0].info;
  if (result.elements() == 0) return {};
  const size_t size = size_of(result.dtype);
  const int rank = result.shape.rank();
  const int64_t outer = result.shape.elements(0, axis);
  const size_t result_row = static_cast<size_t>(result.shape.elements(axis, rank)) * size;
  size_t at = 0;
  for (const ConstTensorView& input : inputs) {
    const size_t row = static_cast<size_t>(input.info.shape.elements(axis, rank)) * size;
    for (size_t i = 0; i < static_cast<size_t>(outer) && row != 0; ++i)
      std::memcpy(outputs[0].as<std::byte>() + i * result_row + at, input.as<std::byte>() + i * row, row);
    at += row;
  }
  return {};
}

// --- Slice
// ----------------------------------------------------------------------------------------------------

Status infer_slice(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const auto starts, shape_operand(node, 1, "starts"));
  RT_ASSIGN(const auto ends, shape_operand(node, 2, "ends"));
  RT_ASSIGN(const SliceGeometry geometry,
            slice_geometry(node.shape(0), node.as<op::SliceAttributes>(), starts, ends));
  return add_output(outputs, node.dtype(0), geometry.result);
}

Status eval_slice(const NodeView& node, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  RT_ASSIGN(const SliceGeometry geometry, slice_geometry(inputs[0].info.shape, node.as<op::SliceAttributes>(),
                                                         ints_of(inputs[1]), ints_of(inputs[2])));
  copy_mapped(outputs[0], inputs[0].data,
              offsets_for(geometry.result, inputs[0].info.shape, [&](int axis, int64_t i) {
                return geometry.start[static_cast<size_t>(axis)] +
                       i * geometry.step[static_cast<size_t>(axis)];
              }));
  return {};
}

// --- Pad
// ------------------------------------------------------------------------------------------------------

Status infer_pad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const auto pads, shape_operand(node, 1, "pads"));
  RT_ASSIGN(const PadGeometry geometry, pad_geometry(node.shape(0), node.as<op::PadAttributes>().mode, pads));
  if (node.has(2)) {
    RT_TRY(expect_same_dtype(node, 2, "value", 0, "x"));
    if (node.input(2).elements() != 1)
      return invalid_argument("expected one element as the pad value, found ", node.input(2));
  }
  return add_output(outputs, node.dtype(0), geometry.result);
}

Status eval_pad(const NodeView& node, std::span<const ConstTensorView> inputs,
                std::span<const TensorView> outputs) {
  const op::PadMode mode = node.as<op::PadAttributes>().mode;
  RT_ASSIGN(const PadGeometry geometry, pad_geometry(inputs[0].info.shape, mode, ints_of(inputs[1])));
  copy_mapped(outputs[0], inputs[0].data,
              offsets_for(geometry.result, inputs[0].info.shape,
                          [&](int axis, int64_t i) { return pad_source(geometry, mode, axis, i); }),
              node.has(2) ? inputs[2].data : nullptr);
  return {};
}

// --- Expand, Tile
// ---------------------------------------------------------------------------------------------

Status infer_expand(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const Shape shape, shape_value(node, 1, "shape"));
  const auto result = broadcast(node.shape(0), shape);
  if (!result)
    return invalid_argument("expected shapes that broadcast, found ", node.shape(0), " and ", shape);
  return add_output(outputs, node.dtype(0), *result);
}

Status eval_expand(const NodeView&, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  const Shape& result = outputs[0].info.shape;
  Shape x = inputs[0].info.shape;
  while (x.rank() < result.rank()) x.insert(0, 1);
  copy_mapped(outputs[0], inputs[0].data,
              offsets_for(result, x, [&](int axis, int64_t i) { return x[axis] == 1 ? 0 : i; }));
  return {};
}

Status infer_tile(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const auto repeats, shape_operand(node, 1, "repeats"));
  Shape result = node.shape(0);
  if (repeats.size() != static_cast<size_t>(result.rank()))
    return invalid_argument("expected ", result.rank(), " repeats, one per axis, found ", repeats.size());
  for (int i = 0; i < result.rank(); ++i) {
    const int64_t repeat = repeats[static_cast<size_t>(i)];
    if (repeat < 0) return invalid_argument("expected repeats of 0 or more, found ", repeat);
    if (__builtin_mul_overflow(result[i], repeat, &result[i]))
      return invalid_argument("expected a result of less than " RT_MOST_ELEMENTS " elements, found more");
  }
  return add_output(outputs, node.dtype(0), result);
}

Status eval_tile(const NodeView&, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const Shape& x = inputs[0].info.shape;
  copy_mapped(outputs[0], inputs[0].data,
              offsets_for(outputs[0].info.shape, x, [&](int axis, int64_t i) { return i % x[axis]; }));
  return {};
}

}  // namespace

RT_PAGE(Identity) = {.kind = OpKind::Identity,
                     .inputs = {1, 2},
                     .shape_operands = 1u << 1,
                     .infer = infer_reshape,
                     .eval = eval_copy,
                     .extents = ExtentRule::Own,
                     .moves = true};
RT_PAGE(Reshape) = {.kind = OpKind::Reshape,
                    .inputs = {2, 2},
                    .shape_operands = 1u << 1,
                    .infer = infer_reshape,
                    .eval = eval_copy,
                    .extents = ExtentRule::Own,
                    .moves = true};
RT_PAGE(Transpose) = {.kind = OpKind::Transpose,
                      .infer = infer_transpose,
                      .eval = eval_transpose,
                      .extents = ExtentRule::Copied,
                      .moves = true};
RT_PAGE(Concat) = {.kind = OpKind::Concat,
                   .inputs = {1, kUnbounded},
                   .infer = infer_concat,
                   .eval = eval_concat,
                   .extents = ExtentRule::Own};
RT_PAGE(Slice) = {.kind = OpKind::Slice,
                  .inputs = {3, 3},
                  .shape_operands = 1u << 1 | 1u << 2,
                  .infer = infer_slice,
                  .eval = eval_slice,
                  .extents = ExtentRule::Own,
                  .moves = true};
RT_PAGE(Pad) = {.kind = OpKind::Pad,
                .inputs = {2, 3},
                .shape_operands = 1u << 1,
                .infer = infer_pad,
                .eval = eval_pad,
                .extents = ExtentRule::Own};
RT_PAGE(Expand) = {.kind = OpKind::Expand,
                   .inputs = {2, 2},
                   .shape_operands = 1u << 1,
                   .infer = infer_expand,
                   .eval = eval_expand,
                   .extents = ExtentRule::Own,
                   .moves = true};
RT_PAGE(Tile) = {.kind = OpKind::Tile,
                 .inputs = {2, 2},
                 .shape_operands = 1u << 1,
                 .infer = infer_tile,
                 .eval = eval_tile,
                 .extents = ExtentRule::Own,
                 .moves = true};

}  // namespace librt::ops
