#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

#include <algorithm>

namespace librt {

void append(std::string& out, DTypeSet set) {
  const char* separator = "";
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!set.contains(dtype)) continue;
    append(out, separator, name_of(dtype));
    separator = ", ";
  }
}

}  // namespace librt

namespace librt::ops {

Status expect_dtype(const NodeView& node, size_t i, Label what, DTypeSet allowed) {
  if (allowed.contains(node.dtype(i))) return {};
  return invalid_argument("expected ", what, " of type ", allowed, ", found ", name_of(node.dtype(i)));
}

Status expect_same_dtype(const NodeView& node, size_t i, Label what, size_t as, Label as_what) {
  if (node.dtype(i) == node.dtype(as)) return {};
  return invalid_argument("expected ", what, " of the same type as ", as_what, ", which is ",
                          name_of(node.dtype(as)), ", found ", name_of(node.dtype(i)), "; insert a Cast");
}

Status expect_shape(const NodeView& node, size_t i, Label what, const Shape& expected) {
  if (node.shape(i) == expected) return {};
  return invalid_argument("expected ", what, " of shape ", expected, ", found ", node.shape(i));
}

Status expect_pair(const NodeView& node, Label first, Label second, DTypeSet allowed) {
  RT_TRY(expect_dtype(node, 0, first, allowed));
  return expect_same_dtype(node, 1, second, 0, first);
}

Status expect_like(const NodeView& node, size_t i, Label what, size_t as, Label as_what,
                   const Shape& expected) {
  RT_TRY(expect_same_dtype(node, i, what, as, as_what));
  return expect_shape(node, i, what, expected);
}

Status expect_like_first(const NodeView& node, Label what, Label first) {
  return expect_like(node, 1, what, 0, first, node.shape(0));
}

Status expect_rank(const NodeView& node, size_t i, Label what, int least, int most) {
  const int rank = node.shape(i).rank();
  if (rank >= least && rank <= most) return {};
  if (least == most)
    return invalid_argument("expected ", what, " of rank ", least, ", found ", node.input(i));
  return invalid_argument("expected ", what, " of rank ", least, " to ", most, ", found ", node.input(i));
}

Status expect_dtype_and_shape(const NodeView& node, size_t i, Label what, DTypeSet allowed,
                              const Shape& expected) {
  RT_TRY(expect_dtype(node, i, what, allowed));
  return expect_shape(node, i, what, expected);
}

Status expect_dtype_and_rank(const NodeView& node, size_t i, Label what, DTypeSet allowed, int least,
                             int most) {
  RT_TRY(expect_dtype(node, i, what, allowed));
  return expect_rank(node, i, what, least, most);
}

Result<std::span<const int64_t>> shape_operand(const NodeView& node, size_t i, Label what) {
  if (!node.has(i)) return invalid_argument("expected ", what, " as input ", i, ", found none");
  if (node.dtype(i) != DType::I64 || node.shape(i).rank() != 1)
    return invalid_argument("expected ", what, " to be an i64 vector, found ", node.input(i));
  if (node.inputs[i].value == nullptr && node.input(i).elements() != 0)
    return invalid_argument("expected the value of ", what,
                            " to be known while planning, found one that depends on data");
  return node.ints(i);
}

Result<Shape> shape_value(const NodeView& node, size_t i, Label what) {
  RT_ASSIGN(const auto extents, shape_operand(node, i, what));
  if (extents.size() > kMaxRank)
    return invalid_argument("expected a shape of at most ", kMaxRank, " axes, found ", extents.size());
  const Shape shape(extents);
  if (!shape.checked_elements())
    return invalid_argument(
        "expected extents of 0 or more and less than " RT_MOST_ELEMENTS " elements, found ", shape);
  return shape;
}

Result<int> resolve_axis(int64_t axis, int rank) {
  if (const auto resolved = normalized_axis(axis, rank)) return *resolved;
  return invalid_argument("expected an axis from ", -rank, " to ", rank - 1, " for rank ", rank, ", found ",
                          axis);
}

Result<std::vector<int>> resolve_axes(std::span<const int64_t> axes, int rank, bool empty_means_all) {
  uint32_t given = axes.empty() && empty_means_all ? ~0u : 0u;  // bit i: axis i
  for (int64_t axis : axes) {
    RT_ASSIGN(const int one, resolve_axis(axis, rank));
    if ((given >> one & 1u) != 0)
      return invalid_argument("expected distinct axes, found axis ", one, " twice");
    given |= 1u << one;
  }
  std::vector<int> resolved;
  for (int axis = 0; axis < rank; ++axis)
    if ((given >> axis & 1u) != 0) resolved.push_back(axis);
  return resolved;
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  if (const auto shape = broadcast(a, b)) return *shape;
  return invalid_argument("expected shapes that broadcast, found ", a, " and ", b);
}

Status add_broadcast_output(const NodeView& node, std::vector<TensorInfo>& outputs, DType dtype) {
  TensorInfo result{dtype, node.shape(0)};
  for (size_t i = 1; i < node.input_count(); ++i) {
    RT_ASSIGN(result.shape, broadcast_shapes(result.shape, node.shape(i)));
  }
  return add_output(outputs, result);
}

Status infer_pair(const NodeView& node, std::vector<TensorInfo>& outputs, DTypeSet allowed, DType dtype) {
  RT_TRY(expect_pair(node, "a", "b", allowed));
  return add_broadcast_output(node, outputs, dtype);
}

Status infer_like_first(const NodeView& node, std::vector<TensorInfo>& outputs) {
  return add_output(outputs, node.input(0));
}

std::array<int64_t, kMaxRank> broadcast_strides(const Shape& shape, const Shape& over) noexcept {
  const auto own = strides_of(shape);
  std::array<int64_t, kMaxRank> strides{};
  const int shift = over.rank() - shape.rank();
  for (int i = 0; i < shape.rank(); ++i)
    strides[static_cast<size_t>(i + shift)] = shape[i] == 1 ? 0 : own[static_cast<size_t>(i)];
  return strides;
}

void next_broadcast(const Shape& over, std::span<const std::array<int64_t, kMaxRank>> strides,
                    std::array<int64_t, kMaxRank>& index, int64_t* offsets) noexcept {
  for (int axis = over.rank() - 1; axis >= 0; --axis) {
    const auto a = static_cast<size_t>(axis);
    for (size_t k = 0; k < strides.size(); ++k) offsets[k] += strides[k][a];
    if (++index[a] < over[axis]) return;
    for (size_t k = 0; k < strides.size(); ++k) offsets[k] -= strides[k][a] * over[axis];
    index[a] = 0;
  }
}

AxisView along(const Shape& shape, int axis) noexcept {
  return {.outer = shape.elements(0, axis),
          .extent = shape[axis],
          .inner = shape.elements(axis + 1, shape.rank())};
}

std::optional<double> constant_number(const Emitter& emit, ValueId id) {
  const Value& value = emit.value(id);
  if (value.role != Role::Constant || !value.is_static() || value.info().elements() != 1) return std::nullopt;
  return load_element(value.data.data, value.dtype, 0);
}

ValueId extent(Emitter& emit, ValueId x, size_t axis) {
  const auto& dims = emit.value(x).dims;
  if (axis < dims.size() && dims[axis].is_known()) return one_int(emit, dims[axis].extent);
  op::ShapeAttributes one;
  one.start = static_cast<int64_t>(axis);
  one.end = one.start + 1;
  return emit.emit(one, {x});
}

ValueId positions(Emitter& emit, ValueId x, size_t axis) {
  return emit.emit(op::RangeAttributes{},
                   {emit.scalar(0, DType::I64), extent(emit, x, axis), emit.scalar(1, DType::I64)});
}

ValueId shape_value(Emitter& emit, ValueId x) {
  return shape_with_ones(emit, x, {});
}

ValueId shape_with_ones(Emitter& emit, ValueId x, std::span<const int> axes) {
  const std::vector<Dim> dims = emit.value(x).dims;
  const auto is_one = [&](int axis) { return std::ranges::find(axes, axis) != axes.end(); };
  const int rank = static_cast<int>(dims.size());
  // Runs of axes become one part each: a constant, or a slice of Shape(x).
  std::vector<ValueId> parts;
  for (int first = 0; first < rank;) {
    const auto known = [&](int axis) { return is_one(axis) || dims[static_cast<size_t>(axis)].is_known(); };
    int last = first + 1;
    while (last < rank && known(last) == known(first)) ++last;
    if (known(first)) {
      std::vector<int64_t> extents;
      for (int i = first; i < last; ++i)
        extents.push_back(is_one(i) ? 1 : dims[static_cast<size_t>(i)].extent);
      parts.push_back(emit.ints(extents));
    } else {
      op::ShapeAttributes stretch;
      stretch.start = first;
      stretch.end = last;
      parts.push_back(emit.emit(stretch, {x}));
    }
    first = last;
  }
  if (parts.empty()) return emit.ints({});
  if (parts.size() == 1) return parts[0];
  op::ConcatAttributes concat;
  concat.axis = 0;
  return emit.emit_many(make_op(concat), parts, 1)[0];
}

ValueId reciprocal_count(Emitter& emit, ValueId x, std::span<const int> axes) {
  const Value known = emit.value(x);
  double count = 1;
  ValueId symbolic = kNoValue;
  for (int axis : axes) {
    const Dim& dim = known.dims[static_cast<size_t>(axis)];
    if (dim.is_known()) {
      count *= static_cast<double>(dim.extent);
      continue;
    }
    // Counts by summing ones: the extent is known only at plan time, and f32 is exact up to 2^24.
    op::ShapeAttributes one;
    one.start = axis;
    one.end = axis + 1;
    const ValueId ones = emit.emit(op::ExpandAttributes{}, {emit.scalar(1, DType::F32), emit.emit(one, {x})});
    const ValueId extent = emit.reduce_sum(ones, {0}, false);
    symbolic = symbolic == kNoValue ? extent : emit.mul(symbolic, extent);
  }
  if (symbolic == kNoValue) return emit.scalar(1 / count, known.dtype);
  const ValueId reciprocal = emit.div(emit.scalar(1 / count, DType::F32), symbolic);
  return known.dtype == DType::F32 ? reciprocal : emit.cast(reciprocal, known.dtype);
}

std::vector<int> known_axes(std::span<const int64_t> axes, int rank) {
  auto resolved = resolve_axes(axes, rank);
  return resolved.ok() ? std::move(resolved).value() : std::vector<int>{};
}

ValueId keep_where(Emitter& emit, ValueId condition, ValueId value) {
  return emit.emit(op::WhereAttributes{}, {condition, value, emit.scalar_like(0, value)});
}

double bytes_of(const TensorInfo& info) noexcept {
  return static_cast<double>(info.bytes());
}

double input_bytes(const NodeView& node) noexcept {
  double bytes = 0;
  for (const Operand& operand : node.inputs)
    if (operand.present) bytes += bytes_of(operand.info);
  return bytes;
}

Cost elementwise_cost(const NodeView& node, double per_element) {
  Cost cost{.bytes = input_bytes(node)};
  for (const TensorInfo& output : node.outputs) cost.bytes += bytes_of(output);
  if (!node.outputs.empty()) cost.flops = per_element * static_cast<double>(node.output(0).elements());
  return cost;
}

}  // namespace librt::ops
