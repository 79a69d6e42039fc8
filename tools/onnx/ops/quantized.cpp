// ONNX Runtime's operators on quantized tensors (com.microsoft), emitted as DequantizeLinear, the operator in
// f32 and QuantizeLinear; a pass turns that into integer arithmetic.
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/window.h"

namespace librt::onnx {
namespace {

/// A scale or zero point of one element as a scalar.
Result<ValueId> quantized_number(NodeContext& c, size_t i) {
  if (!c.has(i)) return kNoValue;
  const Value& value = c.value(c.input(i));
  if (value.rank() == 0) return c.input(i);
  if (value.rank() != 1 || value.dims[0].extent != 1)
    return cannot("input ", i, " of rank ", value.rank(), "; give a scalar");
  return reshape_to(c.emit, c.input(i), {});
}

/// Input x dequantized to f32 with inputs `scale` and `scale` + 1, the zero point.
Result<ValueId> quantized_operand(NodeContext& c, size_t x, size_t scale) {
  RT_ASSIGN(const ValueId factor, quantized_number(c, scale));
  RT_ASSIGN(const ValueId zero, quantized_number(c, scale + 1));
  op::DequantizeLinearAttributes attributes;
  attributes.to = static_cast<uint8_t>(DType::F32);
  return c.emit.emit(attributes, {c.input(x), factor, zero});
}

/// y quantized with inputs `scale` and `scale` + 1, the zero point; u8 without one.
Status quantized_result(NodeContext& c, ValueId y, size_t scale) {
  RT_ASSIGN(const ValueId factor, quantized_number(c, scale));
  RT_ASSIGN(const ValueId zero, quantized_number(c, scale + 1));
  op::QuantizeLinearAttributes attributes;
  attributes.to = static_cast<uint8_t>(zero == kNoValue ? DType::U8 : c.value(zero).dtype);
  return c.result(c.emit.emit(attributes, {y, factor, zero}));
}

// (a, a_scale, a_zero, b, b_scale, b_zero, y_scale, [y_zero])
template <class Attributes>
Status quantized_binary(NodeContext& c) {
  RT_TRY(c.expect_inputs(7, 8));
  RT_ASSIGN(const ValueId a, quantized_operand(c, 0, 1));
  RT_ASSIGN(const ValueId b, quantized_operand(c, 3, 4));
  return quantized_result(c, c.emit.emit(Attributes{}, {a, b}), 6);
}

// (x, x_scale, x_zero, y_scale, [y_zero])
Status quantized_sigmoid(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 5));
  RT_ASSIGN(const ValueId x, quantized_operand(c, 0, 1));
  return quantized_result(c, c.emit.emit(op::SigmoidAttributes{}, {x}), 3);
}

Status quantized_leaky_relu(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 5));
  RT_ASSIGN(const ValueId x, quantized_operand(c, 0, 1));
  op::LeakyReluAttributes attributes;
  attributes.alpha = c.real("alpha", 0.01f);
  return quantized_result(c, c.emit.emit(attributes, {x}), 3);
}

Status quantized_global_average(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 5));
  RT_ASSIGN(const ValueId x, quantized_operand(c, 0, 1));
  std::vector<int64_t> axes;
  const int first = c.integer("channels_last", 0) != 0 ? 1 : 2;
  for (int axis = 0; axis < c.rank() - 2; ++axis) axes.push_back(first + axis);
  return quantized_result(c, c.emit.reduce_mean(x, axes), 3);
}

Status quantized_average_pool(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 5));
  const bool channels_last = c.integer("channels_last", 0) != 0;
  if (channels_last && c.string("auto_pad", "NOTSET").starts_with("SAME"))
    return cannot("auto_pad SAME with channels_last; give pads");
  RT_ASSIGN(const Window window,
            window_of(c, {}, false, channels_last ? AutoPad::Ignore : AutoPad::ApplyOrDefer));
  RT_ASSIGN(ValueId x, quantized_operand(c, 0, 1));
  if (channels_last) x = to_channels_first(c.emit, x);
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0;
  x = average_pooled(c, x, window, ceil_mode, c.integer("count_include_pad", 0) != 0);
  return quantized_result(c, channels_last ? to_channels_last(c.emit, x) : x, 3);
}

Status quantized_mean(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 5));
  RT_ASSIGN(const ValueId x, quantized_operand(c, 0, 1));
  op::ReduceMeanAttributes attributes;
  attributes.axes = c.integers("axes");
  attributes.keep_dims = c.integer("keepdims", 1) != 0;
  return quantized_result(c, c.emit.emit(std::move(attributes), {x}), 3);
}

// `opset` selects the Softmax version: before 13 the dimensions from `axis` on form one axis.
Status quantized_softmax(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 5));
  const int64_t opset = c.integer("opset", 13);
  RT_ASSIGN(ValueId x, quantized_operand(c, 0, 1));
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", -1), c.rank()));
  op::SoftmaxAttributes attributes;
  attributes.axis = axis;
  const bool flat = opset < 13 && axis + 1 < c.rank();
  if (flat) {
    const ValueId columns = dims_product(c.emit, x, axis, c.rank());
    x = c.emit.reshape(x, concat_values(c.emit, {dims_product(c.emit, x, 0, axis), columns}));
    attributes.axis = 1;
  }
  x = c.emit.emit(attributes, {x});
  return quantized_result(c, flat ? reshape_to(c.emit, x, extents_of(c.emit, c.input(0))) : x, 3);
}

// (condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero)
Status quantized_where(NodeContext& c) {
  RT_TRY(c.expect_inputs(9, 9));
  RT_ASSIGN(const ValueId x, quantized_operand(c, 1, 2));
  RT_ASSIGN(const ValueId y, quantized_operand(c, 4, 5));
  return quantized_result(c, c.emit.emit(op::WhereAttributes{}, {c.input(0), x, y}), 7);
}

// (y_scale, y_zero, then x, x_scale, x_zero for each part)
Status quantized_concat(NodeContext& c) {
  if (c.inputs.size() < 5 || c.inputs.size() % 3 != 2)
    return invalid_model("expected y_scale, y_zero_point, and three inputs for each part, found ",
                         c.inputs.size());
  std::vector<ValueId> parts;
  for (size_t i = 2; i < c.inputs.size(); i += 3) {
    RT_ASSIGN(const ValueId part, quantized_operand(c, i, i + 1));
    parts.push_back(part);
  }
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", 0), c.rank(2)));
  op::ConcatAttributes attributes;
  attributes.axis = axis;
  return quantized_result(c, c.emit.emit_many(make_op(attributes), parts, 1)[0], 0);
}

constexpr ImportRow kQuantizedRows[] = {
    {"com.microsoft", "QLinearAdd", 1, kNewestOpset, quantized_binary<op::AddAttributes>},
    {"com.microsoft", "QLinearMul", 1, kNewestOpset, quantized_binary<op::MulAttributes>},
    {"com.microsoft", "QLinearSigmoid", 1, kNewestOpset, quantized_sigmoid},
    {"com.microsoft", "QLinearLeakyRelu", 1, kNewestOpset, quantized_leaky_relu},
    {"com.microsoft", "QLinearGlobalAveragePool", 1, kNewestOpset, quantized_global_average},
    {"com.microsoft", "QLinearAveragePool", 1, kNewestOpset, quantized_average_pool},
    {"com.microsoft", "QLinearReduceMean", 1, kNewestOpset, quantized_mean},
    {"com.microsoft", "QLinearSoftmax", 1, kNewestOpset, quantized_softmax},
    {"com.microsoft", "QLinearWhere", 1, kNewestOpset, quantized_where},
    {"com.microsoft", "QLinearConcat", 1, kNewestOpset, quantized_concat},
};

}  // namespace

std::span<const ImportRow> rows_quantized() {
  return kQuantizedRows;
}

}  // namespace librt::onnx
