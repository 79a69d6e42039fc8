// Gather, and ScatterAdd, its gradient.
#include <cstring>

#include "runtime/ops/indices.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

/// x's shape with `axis` replaced by the axes of `indices`.
Result<Shape> gathered_shape(const Shape& x, int axis, const Shape& indices) {
  if (x.rank() - 1 + indices.rank() > kMaxRank)
    return invalid_argument("expected a result of at most ", kMaxRank, " axes, found ",
                            x.rank() - 1 + indices.rank());
  Shape result;
  for (int i = 0; i < axis; ++i) result.push_back(x[i]);
  for (int64_t extent : indices) result.push_back(extent);
  for (int i = axis + 1; i < x.rank(); ++i) result.push_back(x[i]);
  return result;
}

/// All indices inside [0, extent), negative ones counted from the end.
Result<std::vector<int64_t>> indices_of(const ConstTensorView& view, int64_t extent) {
  std::vector<int64_t> indices(static_cast<size_t>(view.info.elements()));
  for (size_t i = 0; i < indices.size(); ++i) {
    RT_ASSIGN(indices[i], checked_index(view, static_cast<int64_t>(i), extent));
  }
  return indices;
}

Status infer_gather(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 1, "indices", kIndexTypes));
  const Shape& x = node.shape(0);
  RT_ASSIGN(const int axis, resolve_axis(node.as<op::GatherAttributes>().axis, x.rank()));
  RT_TRY(expect_indexable(node, x, axis));
  RT_ASSIGN(const Shape result, gathered_shape(x, axis, node.shape(1)));
  return add_output(outputs, node.dtype(0), result);
}

Status eval_gather(const NodeView& node, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  const TensorInfo& x = inputs[0].info;
  RT_ASSIGN(const int axis, resolve_axis(node.as<op::GatherAttributes>().axis, x.shape.rank()));
  RT_ASSIGN(const std::vector<int64_t> indices, indices_of(inputs[1], x.shape[axis]));
  if (outputs[0].info.elements() == 0) return {};
  const size_t row = static_cast<size_t>(x.shape.elements(axis + 1, x.shape.rank())) * size_of(x.dtype);
  const size_t block = row * static_cast<size_t>(x.shape[axis]);
  std::byte* to = outputs[0].as<std::byte>();
  const std::byte* from = inputs[0].as<std::byte>();
  for (int64_t outer = x.shape.elements(0, axis); outer > 0; --outer, from += block)
    for (int64_t index : indices) {
      std::memcpy(to, from + static_cast<size_t>(index) * row, row);
      to += row;
    }
  return {};
}

Status infer_scatter_add(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const Shape shape, shape_value(node, 0, "shape"));
  RT_TRY(expect_dtype(node, 1, "indices", kIndexTypes));
  RT_TRY(expect_dtype(node, 2, "updates", kNumericTypes));
  RT_ASSIGN(const int axis, resolve_axis(node.as<op::ScatterAddAttributes>().axis, shape.rank()));
  RT_TRY(expect_indexable(node, shape, axis));
  RT_ASSIGN(const Shape updates, gathered_shape(shape, axis, node.shape(1)));
  if (node.shape(2) != updates)
    return invalid_argument("expected updates ", updates, ", found ", node.shape(2));
  return add_output(outputs, node.dtype(2), shape);
}

Status eval_scatter_add(const NodeView& node, std::span<const ConstTensorView> inputs,
                        std::span<const TensorView> outputs) {
  const Shape& shape = outputs[0].info.shape;
  RT_ASSIGN(const int axis, resolve_axis(node.as<op::ScatterAddAttributes>().axis, shape.rank()));
  RT_ASSIGN(const std::vector<int64_t> indices, indices_of(inputs[1], shape[axis]));
  with_values(outputs[0].info.dtype, [&]<class T>() {
    std::vector<T> result(static_cast<size_t>(shape.elements()));
    const std::vector<T> updates = load_all<T>(inputs[2]);
    const int64_t row = shape.elements(axis + 1, shape.rank());
    const int64_t block = row * shape[axis];
    const T* from = updates.data();
    T* to = result.data();
    for (int64_t outer = updates.empty() ? 0 : shape.elements(0, axis); outer > 0; --outer, to += block)
      for (int64_t index : indices)
        for (int64_t i = 0; i < row; ++i) to[index * row + i] += *from++;
    store_all<T>(outputs[0], result);
  });
  return {};
}

Cost cost_gather(const NodeView& node) {
  // The rows that are read, not the whole table.
  Cost cost{.bytes = bytes_of(node.input(1))};
  for (const TensorInfo& output : node.outputs) cost.bytes += 2 * bytes_of(output);
  return cost;
}

Cost cost_scatter_add(const NodeView& node) {
  Cost cost{.flops = static_cast<double>(node.input(2).elements()),
            .bytes = bytes_of(node.input(1)) + 3 * bytes_of(node.input(2))};
  for (const TensorInfo& output : node.outputs) cost.bytes += bytes_of(output);
  return cost;
}

// --- gradients
// ------------------------------------------------------------------------------------------------

void gather_gradient(GradContext& context) {
  op::ScatterAddAttributes attributes;
  attributes.axis = context.node.as<op::GatherAttributes>().axis;
  context.set(0, context.emit.emit(attributes, {shape_value(context.emit, context.input(0)), context.input(1),
                                                context.grad()}));
}

void scatter_add_gradient(GradContext& context) {
  op::GatherAttributes attributes;
  attributes.axis = context.node.as<op::ScatterAddAttributes>().axis;
  context.set(2, context.emit.emit(attributes, {context.grad(), context.input(1)}));
}

}  // namespace

RT_PAGE(Gather) = {.kind = OpKind::Gather,
                   .inputs = {2, 2},
                   .infer = infer_gather,
                   .eval = eval_gather,
                   .cost = cost_gather,
                   .extents = ExtentRule::Copied,
                   .moves = true};
RT_PAGE(ScatterAdd) = {.kind = OpKind::ScatterAdd,
                       .inputs = {3, 3},
                       .shape_operands = 1u << 0,
                       .infer = infer_scatter_add,
                       .cost = cost_scatter_add,
                       .extents = ExtentRule::Own};

RT_COMPILER_PAGE(Gather) = {.gradient = gather_gradient, .tolerance = {0, 0}};
RT_COMPILER_PAGE(ScatterAdd) = {
    .eval = eval_scatter_add, .gradient = scatter_add_gradient, .tolerance = {1e-5, 1e-5}};

}  // namespace librt::ops
