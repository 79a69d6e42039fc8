// Softmax, LogSoftmax and Hardmax.
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

ValueId hardmax_along(NodeContext& c, ValueId x, int axis) {
  op::ArgMaxAttributes attributes;
  attributes.axis = axis;
  const ValueId first = c.emit.emit(attributes, {x});
  const ValueId limit = reshape_to(c.emit, dims_product(c.emit, x, axis, axis + 1), {});
  ValueId counted =
      c.emit.emit(op::RangeAttributes{}, {c.emit.scalar(0, DType::I64), limit, c.emit.scalar(1, DType::I64)});
  std::vector<int64_t> extents(static_cast<size_t>(c.value(x).rank() - axis), 1);
  extents[0] = -1;
  counted = c.emit.reshape(counted, c.emit.ints(extents));
  return c.emit.cast(c.emit.emit(op::EqualAttributes{}, {first, counted}), c.value(x).dtype);
}

template <class Attributes>
ValueId softmax_along(NodeContext& c, ValueId x, int axis) {
  Attributes attributes;
  attributes.axis = axis;
  return c.emit.emit(attributes, {x});
}

using Along = ValueId (*)(NodeContext&, ValueId, int);

template <Along kAlong>
Status one_axis(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", -1), c.rank()));
  return c.result(kAlong(c, c.input(0), axis));
}

// Before opset 13 the dimensions from `axis` on form one axis.
template <Along kAlong>
Status flattened(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId x = c.input(0);
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", 1), c.rank()));
  bool one_after = true;
  for (int i = axis + 1; i < c.rank(); ++i) one_after = one_after && c.extent(0, i) == 1;
  if (one_after) return c.result(kAlong(c, x, axis));
  const std::vector<Extent> extents = extents_of(c.emit, x);
  const ValueId rows = dims_product(c.emit, x, 0, axis);
  const ValueId columns = dims_product(c.emit, x, axis, c.rank());
  const ValueId matrix = c.emit.reshape(x, concat_values(c.emit, {rows, columns}));
  return c.result(reshape_to(c.emit, kAlong(c, matrix, 1), extents));
}

constexpr ImportRow kSoftmaxRows[] = {
    {"", "Softmax", 1, 12, flattened<softmax_along<op::SoftmaxAttributes>>},
    {"", "Softmax", 13, kNewestOpset, one_axis<softmax_along<op::SoftmaxAttributes>>},
    {"", "LogSoftmax", 1, 12, flattened<softmax_along<op::LogSoftmaxAttributes>>},
    {"", "LogSoftmax", 13, kNewestOpset, one_axis<softmax_along<op::LogSoftmaxAttributes>>},
    {"", "Hardmax", 1, 12, flattened<hardmax_along>},
    {"", "Hardmax", 13, kNewestOpset, one_axis<hardmax_along>},
};

}  // namespace

std::span<const ImportRow> rows_softmax() {
  return kSoftmaxRows;
}

}  // namespace librt::onnx
