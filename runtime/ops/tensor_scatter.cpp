// TensorScatter: writes rows of an update into a cache, at a separate position for every batch entry.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Result<int> axis_of(const op::TensorScatterAttributes& attributes, int rank) {
  RT_ASSIGN(const int axis, resolve_axis(attributes.axis, rank));
  if (axis == 0) return invalid_argument("expected an axis other than 0, which is the batch");
  return axis;
}

Status infer_tensor_scatter(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_rank(node, 0, "cache", 2));
  RT_TRY(expect_same_dtype(node, 1, "update", 0, "cache"));
  Shape cache = node.shape(0);
  RT_ASSIGN(const int axis, axis_of(node.as<op::TensorScatterAttributes>(), cache.rank()));
  const Shape& update = node.shape(1);
  if (update.rank() != cache.rank() || update[axis] > cache[axis])
    return invalid_argument("expected an update of at most ", cache[axis], " along axis ", axis,
                            " of the cache ", cache, ", found ", update);
  cache[axis] = update[axis];
  RT_TRY(expect_shape(node, 1, "update", cache));
  if (node.has(2))
    RT_TRY(
        expect_dtype_and_shape(node, 2, "write_indices", DTypeSet(DType::I32, DType::I64), Shape{cache[0]}));
  return infer_like_first(node, outputs);
}

Status eval_tensor_scatter(const NodeView& node, std::span<const ConstTensorView> inputs,
                           std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::TensorScatterAttributes>();
  const Shape &cache = inputs[0].info.shape, &update = inputs[1].info.shape;
  RT_ASSIGN(const int axis, axis_of(attributes, cache.rank()));
  if (outputs[0].info.elements() == 0) return {};
  std::byte* to = outputs[0].as<std::byte>();
  if (to != inputs[0].data) std::memcpy(to, inputs[0].data, outputs[0].info.bytes());
  const std::byte* from = inputs[1].as<std::byte>();
  const size_t row =
      static_cast<size_t>(cache.elements(axis + 1, cache.rank())) * size_of(outputs[0].info.dtype);
  const int64_t inner = cache.elements(1, axis), positions = cache[axis];
  for (int64_t outer = 0; outer < cache[0] * inner; ++outer, to += row * static_cast<size_t>(positions)) {
    int64_t first = inputs.size() > 2 && inputs[2].data != nullptr
                        ? load_integer(inputs[2].data, inputs[2].info.dtype, outer / inner)
                        : 0;
    // Near the cache, so that sums do not overflow.
    first = attributes.circular ? first % positions : std::clamp(first, -positions, positions);
    for (int64_t i = 0; i < update[axis]; ++i, from += row) {
      int64_t at = first + i;
      if (attributes.circular) at = (at + positions) % positions;
      if (at >= 0 && at < positions) std::memcpy(to + static_cast<size_t>(at) * row, from, row);
    }
  }
  return {};
}

Cost cost_tensor_scatter(const NodeView& node) {
  return {.bytes = 2 * bytes_of(node.input(1))};
}

// --- gradient

/// 0, 1, .. for axis `axis` of x, of this shape.
ValueId shaped_positions(Emitter& e, ValueId x, int axis, std::span<const int64_t> shape) {
  return e.reshape(positions(e, x, static_cast<size_t>(axis)), e.ints(shape));
}

/// place [N, L] with ones after it, as many axes as x.
ValueId with_axes_of(Emitter& e, ValueId place, ValueId x) {
  const std::vector<int64_t> ones(static_cast<size_t>(e.value(x).rank() - 2), 1);
  if (ones.empty()) return place;
  return e.reshape(place, e.emit(op::ConcatAttributes{}, {shape_value(e, place), e.ints(ones)}));
}

/// The update's gradient: the rows of grad that it was written to, gathered from [N P, ..] by n P + place; 0
/// for those that were not written.
ValueId written_rows(GradContext& c, int axis) {
  Emitter& e = c.emit;
  const ValueId grad = c.grad(), update = c.input(1);
  std::vector<int64_t> to_front(static_cast<size_t>(e.value(grad).rank()));
  std::iota(to_front.begin(), to_front.end(), 0);
  std::rotate(to_front.begin() + 1, to_front.begin() + axis, to_front.begin() + axis + 1);
  std::vector<int64_t> back(to_front.size());
  for (size_t i = 0; i < back.size(); ++i) back[static_cast<size_t>(to_front[i])] = static_cast<int64_t>(i);

  const int64_t column[] = {-1, 1}, row[] = {1, -1};
  const ValueId extent_of_axis = extent(e, grad, static_cast<size_t>(axis));
  const bool circular = c.node.as<op::TensorScatterAttributes>().circular;
  ValueId place = shaped_positions(e, update, axis, row), written = kNoValue;
  if (c.input(2) != kNoValue) {
    const auto inside = [&](ValueId x) { return e.emit(op::ModAttributes{}, {x, extent_of_axis}); };
    ValueId first = e.reshape(e.cast(c.input(2), DType::I64), e.ints(column));
    if (circular) first = inside(first);  // also before the sum, which could overflow
    place = e.add(place, first);
    if (circular) place = inside(place);
  }
  if (c.input(2) != kNoValue && !circular) {
    const ValueId zero = e.scalar(0, DType::I64);
    written = e.emit(op::AndAttributes{}, {e.emit(op::GreaterOrEqualAttributes{}, {place, zero}),
                                           e.emit(op::LessAttributes{}, {place, extent_of_axis})});
    place = e.emit(op::WhereAttributes{}, {written, place, zero});
    written = with_axes_of(e, written, grad);
  }
  place = e.add(place, e.mul(shaped_positions(e, grad, 0, column), extent_of_axis));

  const ValueId moved = e.transpose(grad, to_front);
  op::ShapeAttributes rest;
  rest.start = 2;
  op::ConcatAttributes along_first;
  const ValueId rows = e.mul(extent(e, grad, 0), extent_of_axis);
  const ValueId shape = e.emit(along_first, {rows, e.emit(rest, {moved})});
  const ValueId gathered = e.emit(op::GatherAttributes{}, {e.reshape(moved, shape), place});
  return e.transpose(written == kNoValue ? gathered : keep_where(e, written, gathered), back);
}

void gradient_of_tensor_scatter(GradContext& c) {
  Emitter& e = c.emit;
  const auto& attributes = c.node.as<op::TensorScatterAttributes>();
  const auto axis = normalized_axis(attributes.axis, e.value(c.grad()).rank());
  if (!axis) return e.fail(internal_error("expected an axis that was checked"));
  if (c.needs(0)) {
    op::ConstantOfShapeAttributes zeros;
    zeros.dtype = static_cast<uint8_t>(e.value(c.grad()).dtype);
    const ValueId nothing = e.emit(zeros, {shape_value(e, c.input(1))});
    c.set(0, e.emit(attributes, {c.grad(), nothing, c.input(2)}));
  }
  if (c.needs(1)) c.set(1, written_rows(c, *axis));
}

}  // namespace

RT_PAGE(TensorScatter) = {.kind = OpKind::TensorScatter,
                          .inputs = {2, 3},
                          .infer = infer_tensor_scatter,
                          .cost = cost_tensor_scatter,
                          .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(TensorScatter) = {.eval = eval_tensor_scatter, .gradient = gradient_of_tensor_scatter};

}  // namespace librt::ops
