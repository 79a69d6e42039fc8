// GatherElements, GatherND, ScatterElements and ScatterND.
//
// Each computes its targets first: the flat index of an element (Elements) or of a row of trailing elements
// (ND). Reading and writing them is common to both.
#include <cstring>

#include "runtime/ops/indices.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

using Targets = std::vector<int64_t>;

/// The flat index in `shape` for each element of `indices`: its own coordinates, that of `axis` replaced.
Result<Targets> element_targets(const Shape& shape, int64_t axis_attribute, const ConstTensorView& indices) {
  RT_ASSIGN(const int axis, resolve_axis(axis_attribute, shape.rank()));
  const Shape& over = indices.info.shape;
  Targets targets(static_cast<size_t>(over.elements()));
  std::array<int64_t, kMaxRank> at{};
  for (size_t i = 0; i < targets.size(); ++i) {
    RT_ASSIGN(const int64_t index, checked_index(indices, static_cast<int64_t>(i), shape[axis]));
    for (int d = 0; d < shape.rank(); ++d)
      targets[i] = targets[i] * shape[d] + (d == axis ? index : at[static_cast<size_t>(d)]);
    for (int d = over.rank() - 1; d >= 0 && ++at[static_cast<size_t>(d)] == over[d]; --d)
      at[static_cast<size_t>(d)] = 0;
  }
  return targets;
}

/// The row of `shape` for each tuple in the last axis of `indices`, after `batch` common leading axes.
Result<Targets> tuple_targets(const Shape& shape, int batch, const ConstTensorView& indices) {
  const Shape& over = indices.info.shape;
  const int64_t length = over.back();
  Targets targets(static_cast<size_t>(over.elements(0, over.rank() - 1)));
  const int64_t in_batch = over.elements(batch, over.rank() - 1);
  for (size_t i = 0; i < targets.size(); ++i) {
    targets[i] = static_cast<int64_t>(i) / in_batch;
    for (int64_t k = 0; k < length; ++k) {
      const int64_t extent = shape[batch + static_cast<int>(k)];
      RT_ASSIGN(const int64_t index, checked_index(indices, static_cast<int64_t>(i) * length + k, extent));
      targets[i] = targets[i] * extent + index;
    }
  }
  return targets;
}

void read_rows(const ConstTensorView& x, const Targets& targets, const TensorView& y) {
  if (y.info.elements() == 0) return;
  const size_t row = y.info.bytes() / targets.size();
  for (size_t i = 0; i < targets.size(); ++i)
    std::memcpy(y.as<std::byte>() + i * row, x.as<std::byte>() + static_cast<size_t>(targets[i]) * row, row);
}

// --- scatter reductions

template <class T>
bool less(DType dtype, T a, T b) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (dtype != DType::U64) return static_cast<int64_t>(a) < static_cast<int64_t>(b);
  }
  return a < b;
}

template <class T>
T combine(op::ScatterReduction reduction, DType dtype, T old, T update) {
  switch (reduction) {
    case op::ScatterReduction::None: break;
    case op::ScatterReduction::Add: return old + update;
    case op::ScatterReduction::Mul: return old * update;
    case op::ScatterReduction::Minimum: return old != old || less(dtype, old, update) ? old : update;
    case op::ScatterReduction::Maximum: return old != old || less(dtype, update, old) ? old : update;
  }
  return update;
}

void write_rows(op::ScatterReduction reduction, std::span<const ConstTensorView> inputs,
                const Targets& targets, const TensorView& y) {
  const DType dtype = y.info.dtype;
  with_values(dtype, [&]<class T>() {
    std::vector<T> result = load_all<T>(inputs[0]);
    const std::vector<T> updates = load_all<T>(inputs[2]);
    const size_t row = targets.empty() ? 0 : updates.size() / targets.size();
    for (size_t i = 0; i < targets.size(); ++i)
      for (size_t k = 0; k < row; ++k) {
        T& element = result[static_cast<size_t>(targets[i]) * row + k];
        element = combine(reduction, dtype, element, updates[i * row + k]);
      }
    store_all<T>(y, result);
  });
}

Status check_reduction(op::ScatterReduction reduction) {
  if (reduction >= op::ScatterReduction::MIN && reduction <= op::ScatterReduction::MAX) return {};
  return invalid_argument("expected a known reduction, found value ", static_cast<int>(reduction));
}

// --- GatherElements, ScatterElements

Status check_elements(const NodeView& node, int64_t axis_attribute) {
  RT_TRY(expect_dtype(node, 1, "indices", kIndexTypes));
  const Shape& x = node.shape(0);
  const Shape& indices = node.shape(1);
  RT_ASSIGN(const int axis, resolve_axis(axis_attribute, x.rank()));
  bool fits = indices.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || indices[d] <= x[d];
  if (fits) return expect_indexable(node, x, axis);
  return invalid_argument("expected indices of the rank of x and no larger but on axis ", axis, ", found ",
                          indices, " for ", x);
}

Status infer_gather_elements(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_elements(node, node.as<op::GatherElementsAttributes>().axis));
  return add_output(outputs, node.dtype(0), node.shape(1));
}

Status eval_gather_elements(const NodeView& node, std::span<const ConstTensorView> inputs,
                            std::span<const TensorView> outputs) {
  RT_ASSIGN(const Targets targets,
            element_targets(inputs[0].info.shape, node.as<op::GatherElementsAttributes>().axis, inputs[1]));
  read_rows(inputs[0], targets, outputs[0]);
  return {};
}

Status infer_scatter_elements(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::ScatterElementsAttributes>();
  RT_TRY(check_reduction(attributes.reduction));
  RT_TRY(check_elements(node, attributes.axis));
  RT_TRY(expect_like(node, 2, "updates", 0, "x", node.shape(1)));
  return infer_like_first(node, outputs);
}

Status eval_scatter_elements(const NodeView& node, std::span<const ConstTensorView> inputs,
                             std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::ScatterElementsAttributes>();
  RT_ASSIGN(const Targets targets, element_targets(inputs[0].info.shape, attributes.axis, inputs[1]));
  write_rows(attributes.reduction, inputs, targets, outputs[0]);
  return {};
}

// --- GatherND, ScatterND

/// The shape of what the index tuples select: the axes of `indices` but the last, then those of x after the
/// `batch` leading ones and the indexed ones.
Result<Shape> picked_shape(const NodeView& node, int64_t batch) {
  RT_TRY(expect_dtype(node, 1, "indices", kIndexTypes));
  const Shape& x = node.shape(0);
  const Shape& indices = node.shape(1);
  if (indices.rank() < 1 || batch < 0 || batch >= indices.rank() || batch > x.rank())
    return invalid_argument("expected indices of rank 1 or more, after ", batch, " batch axes, found ",
                            indices, " for ", x);
  const auto skipped = static_cast<int>(batch);
  if (indices.back() < 0 || indices.back() > x.rank() - batch)
    return invalid_argument("expected index tuples of at most ", x.rank() - skipped, " entries, found ",
                            indices.back());
  for (int d = 0; d < skipped; ++d)
    if (indices[d] != x[d])
      return invalid_argument("expected the same ", batch, " leading extents, found ", indices, " for ", x);
  const int tail = skipped + static_cast<int>(indices.back());
  for (int d = skipped; d < tail; ++d) RT_TRY(expect_indexable(node, x, d));
  if (indices.rank() - 1 + x.rank() - tail > kMaxRank)
    return invalid_argument("expected a result of at most ", kMaxRank, " axes, found ",
                            indices.rank() - 1 + x.rank() - tail);
  Shape shape(indices.dims().first(static_cast<size_t>(indices.rank() - 1)));
  for (int d = tail; d < x.rank(); ++d) shape.push_back(x[d]);
  return shape;
}

Status infer_gather_nd(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const Shape shape, picked_shape(node, node.as<op::GatherNDAttributes>().batch_dimensions));
  return add_output(outputs, node.dtype(0), shape);
}

Status eval_gather_nd(const NodeView& node, std::span<const ConstTensorView> inputs,
                      std::span<const TensorView> outputs) {
  const auto batch = static_cast<int>(node.as<op::GatherNDAttributes>().batch_dimensions);
  if (outputs[0].info.elements() == 0) return {};
  RT_ASSIGN(const Targets targets, tuple_targets(inputs[0].info.shape, batch, inputs[1]));
  read_rows(inputs[0], targets, outputs[0]);
  return {};
}

Status infer_scatter_nd(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_reduction(node.as<op::ScatterNDAttributes>().reduction));
  RT_ASSIGN(const Shape updates, picked_shape(node, 0));
  RT_TRY(expect_like(node, 2, "updates", 0, "x", updates));
  return infer_like_first(node, outputs);
}

Status eval_scatter_nd(const NodeView& node, std::span<const ConstTensorView> inputs,
                       std::span<const TensorView> outputs) {
  Targets targets;
  if (inputs[2].info.elements() != 0) {
    RT_ASSIGN(targets, tuple_targets(inputs[0].info.shape, 0, inputs[1]));
  }
  write_rows(node.as<op::ScatterNDAttributes>().reduction, inputs, targets, outputs[0]);
  return {};
}

// --- costs

/// The elements that are read, not all of x.
Cost cost_of_gather(const NodeView& node) {
  Cost cost{.bytes = bytes_of(node.input(1))};
  for (const TensorInfo& output : node.outputs) cost.bytes += 2 * bytes_of(output);
  return cost;
}

Cost cost_of_scatter(const NodeView& node) {
  return {.flops = static_cast<double>(node.input(2).elements()),
          .bytes = 2 * bytes_of(node.input(0)) + bytes_of(node.input(1)) + 3 * bytes_of(node.input(2))};
}

// --- gradients

ValueId zeros_like(Emitter& emit, ValueId x) {
  return emit.emit(op::ExpandAttributes{}, {emit.scalar_like(0, x), shape_value(emit, x)});
}

/// Gathers and scatters at a node's indices, so that the rules below serve both kinds of index.
struct Elements {
  int64_t axis;
  explicit Elements(const op::GatherElementsAttributes& a) : axis(a.axis) {}
  explicit Elements(const op::ScatterElementsAttributes& a) : axis(a.axis) {}
  ValueId gather(Emitter& emit, ValueId x, ValueId indices) const {
    op::GatherElementsAttributes attributes;
    attributes.axis = axis;
    return emit.emit(attributes, {x, indices});
  }
  ValueId scatter(Emitter& emit, ValueId x, ValueId indices, ValueId updates,
                  op::ScatterReduction reduction) const {
    op::ScatterElementsAttributes attributes;
    attributes.axis = axis;
    attributes.reduction = reduction;
    return emit.emit(attributes, {x, indices, updates});
  }
};

struct Tuples {
  explicit Tuples(const op::ScatterNDAttributes&) {}
  ValueId gather(Emitter& emit, ValueId x, ValueId indices) const {
    return emit.emit(op::GatherNDAttributes{}, {x, indices});
  }
  ValueId scatter(Emitter& emit, ValueId x, ValueId indices, ValueId updates,
                  op::ScatterReduction reduction) const {
    op::ScatterNDAttributes attributes;
    attributes.reduction = reduction;
    return emit.emit(attributes, {x, indices, updates});
  }
};

void gather_elements_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const Elements indexing(context.node.as<op::GatherElementsAttributes>());
  context.set(0, indexing.scatter(emit, zeros_like(emit, context.input(0)), context.input(1), context.grad(),
                                  op::ScatterReduction::Add));
}

/// The position along each batch axis is prepended to every index tuple.
void gather_nd_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const auto batch = static_cast<int>(context.node.as<op::GatherNDAttributes>().batch_dimensions);
  ValueId indices = context.input(1);
  if (batch > 0) {
    const int rank = emit.value(indices).rank();
    const DType dtype = emit.value(indices).dtype;
    std::vector<ValueId> parts;
    std::vector<int> last{rank - 1};
    const ValueId one_each = shape_with_ones(emit, indices, last);
    const ValueId ones = emit.emit(op::ExpandAttributes{}, {emit.scalar(1, dtype), one_each});
    for (int d = 0; d < batch; ++d) {
      op::CumSumAttributes count;
      count.axis = d;
      count.exclusive = true;
      parts.push_back(emit.emit(count, {ones}));
    }
    parts.push_back(indices);
    op::ConcatAttributes concat;
    concat.axis = rank - 1;
    indices = emit.emit_many(make_op(concat), parts, 1)[0];
  }
  op::ScatterNDAttributes attributes;
  attributes.reduction = op::ScatterReduction::Add;
  context.set(0, emit.emit(attributes, {zeros_like(emit, context.input(0)), indices, context.grad()}));
}

/// 1 or 0 of the type of `like`.
ValueId as_values(Emitter& emit, ValueId mask, ValueId like) {
  return emit.cast(mask, emit.value(like).dtype);
}

/// The gradient goes in equal parts to x and the updates that attain the extremum.
template <class Indexing>
void extreme_gradient(GradContext& context, const Indexing& indexing) {
  Emitter& emit = context.emit;
  const ValueId x = context.input(0), indices = context.input(1), updates = context.input(2);
  const ValueId y = context.output();
  const ValueId in_x = as_values(emit, emit.emit(op::EqualAttributes{}, {x, y}), x);
  const ValueId in_updates =
      as_values(emit, emit.emit(op::EqualAttributes{}, {updates, indexing.gather(emit, y, indices)}), x);
  const ValueId count = indexing.scatter(emit, in_x, indices, in_updates, op::ScatterReduction::Add);
  const ValueId share = emit.div(context.grad(), count);
  if (context.needs(0)) context.set(0, emit.mul(in_x, share));
  if (context.needs(2)) context.set(2, emit.mul(in_updates, indexing.gather(emit, share, indices)));
}

/// The derivative by each factor is the product of the others: that of the nonzero ones if no other one is 0,
/// else 0.
template <class Indexing>
void product_gradient(GradContext& context, const Indexing& indexing) {
  Emitter& emit = context.emit;
  const ValueId x = context.input(0), indices = context.input(1), updates = context.input(2);
  const ValueId zero = emit.scalar_like(0, x), one = emit.scalar_like(1, x);
  const auto is_zero = [&](ValueId value) { return emit.emit(op::EqualAttributes{}, {value, zero}); };
  const auto not_zero = [&](ValueId value) {
    return emit.emit(op::WhereAttributes{}, {is_zero(value), one, value});
  };
  const ValueId zeros = indexing.scatter(emit, as_values(emit, is_zero(x), x), indices,
                                         as_values(emit, is_zero(updates), x), op::ScatterReduction::Add);
  const ValueId product =
      emit.mul(context.grad(),
               indexing.scatter(emit, not_zero(x), indices, not_zero(updates), op::ScatterReduction::Mul));
  const auto of = [&](ValueId value, ValueId count, ValueId whole) {
    const ValueId others = emit.sub(count, as_values(emit, is_zero(value), x));
    return keep_where(emit, is_zero(others), emit.div(whole, not_zero(value)));
  };
  if (context.needs(0)) context.set(0, of(x, zeros, product));
  if (context.needs(2))
    context.set(2,
                of(updates, indexing.gather(emit, zeros, indices), indexing.gather(emit, product, indices)));
}

/// True for updates that are in the result, not overwritten by a later one: their ordinals are scattered,
/// gathered again and compared.
template <class Indexing>
ValueId stayed(GradContext& context, const Indexing& indexing) {
  Emitter& emit = context.emit;
  const ValueId indices = context.input(1);
  const auto filled = [&](double number, ValueId like) {
    return emit.emit(op::ExpandAttributes{}, {emit.scalar(number, DType::I32), shape_value(emit, like)});
  };
  const std::array<int64_t, 1> flat{-1};
  const ValueId ones = emit.reshape(filled(1, context.input(2)), emit.ints(flat));
  const ValueId values =
      emit.reshape(emit.emit(op::CumSumAttributes{}, {ones}), shape_value(emit, context.input(2)));
  const ValueId last =
      indexing.scatter(emit, filled(0, context.input(0)), indices, values, op::ScatterReduction::None);
  return emit.emit(op::EqualAttributes{}, {indexing.gather(emit, last, indices), values});
}

template <class Attributes, class Indexing>
void scatter_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const auto& attributes = context.node.as<Attributes>();
  const Indexing indexing(attributes);
  const ValueId indices = context.input(1);
  switch (attributes.reduction) {
    case op::ScatterReduction::None:
      if (context.needs(0))
        context.set(0, indexing.scatter(emit, context.grad(), indices, zeros_like(emit, context.input(2)),
                                        op::ScatterReduction::None));
      break;
    case op::ScatterReduction::Add:
      if (context.needs(0)) context.set(0, context.grad());
      break;
    case op::ScatterReduction::Mul: return product_gradient(context, indexing);
    case op::ScatterReduction::Minimum:
    case op::ScatterReduction::Maximum: return extreme_gradient(context, indexing);
  }
  if (!context.needs(2)) return;
  const ValueId gathered = indexing.gather(emit, context.grad(), indices);
  const bool replaces = attributes.reduction == op::ScatterReduction::None;
  context.set(2, replaces ? keep_where(emit, stayed(context, indexing), gathered) : gathered);
}

}  // namespace

RT_PAGE(GatherElements) = {.kind = OpKind::GatherElements,
                           .inputs = {2, 2},
                           .infer = infer_gather_elements,
                           .cost = cost_of_gather,
                           .extents = ExtentRule::Copied,
                           .moves = true};
RT_PAGE(GatherND) = {.kind = OpKind::GatherND,
                     .inputs = {2, 2},
                     .infer = infer_gather_nd,
                     .cost = cost_of_gather,
                     .extents = ExtentRule::Copied,
                     .moves = true};
RT_PAGE(ScatterElements) = {.kind = OpKind::ScatterElements,
                            .inputs = {3, 3},
                            .infer = infer_scatter_elements,
                            .cost = cost_of_scatter,
                            .extents = ExtentRule::LikeFirst};
RT_PAGE(ScatterND) = {.kind = OpKind::ScatterND,
                      .inputs = {3, 3},
                      .infer = infer_scatter_nd,
                      .cost = cost_of_scatter,
                      .extents = ExtentRule::LikeFirst};

RT_COMPILER_PAGE(GatherElements) = {
    .eval = eval_gather_elements, .gradient = gather_elements_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(GatherND) = {.eval = eval_gather_nd, .gradient = gather_nd_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(ScatterElements) = {.eval = eval_scatter_elements,
                                     .gradient = scatter_gradient<op::ScatterElementsAttributes, Elements>,
                                     .tolerance = {1e-5, 1e-5}};
RT_COMPILER_PAGE(ScatterND) = {.eval = eval_scatter_nd,
                               .gradient = scatter_gradient<op::ScatterNDAttributes, Tuples>,
                               .tolerance = {1e-5, 1e-5}};

}  // namespace librt::ops
