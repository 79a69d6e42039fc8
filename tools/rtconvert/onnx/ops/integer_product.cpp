// Products of 8-bit integers: MatMulInteger and ConvInteger, and QLinearMatMul and QLinearConv, which
// quantize the sums again.
#include "tools/rtconvert/onnx/node.h"
#include "tools/rtconvert/onnx/shapes.h"
#include "tools/rtconvert/onnx/window.h"

namespace rt::onnx {
namespace {

bool is_one_number(const Value& value) {
  return value.rank() == 0 || (value.rank() == 1 && value.dims[0].extent == 1);
}

/// A scale or zero point of one element as a scalar, a vector that belongs to the rows of a matrix as a
/// column.
ValueId per_row(NodeContext& c, size_t i) {
  if (!c.has(i)) return kNoValue;
  if (is_one_number(c.value(c.input(i)))) return reshape_to(c.emit, c.input(i), {});
  return c.rank(i) == 1 ? unsqueeze(c.emit, c.input(i), {{1}}) : c.input(i);
}
ValueId per_column(NodeContext& c, size_t i) {
  if (!c.has(i)) return kNoValue;
  return is_one_number(c.value(c.input(i))) ? reshape_to(c.emit, c.input(i), {}) : c.input(i);
}

/// Inputs a and b, whose vectors take part as one row or one column, which squeeze_product() takes away
/// again.
ValueId integer_product(NodeContext& c, size_t a, size_t b, ValueId a_zero, ValueId b_zero) {
  ValueId left = c.input(a), right = c.input(b);
  if (c.rank(a) == 1) left = unsqueeze(c.emit, left, {{0}});
  if (c.rank(b) == 1) right = unsqueeze(c.emit, right, {{1}});
  return c.emit.emit(op::MatMulIntegerAttributes{}, {left, right, a_zero, b_zero});
}
ValueId squeeze_product(NodeContext& c, ValueId y, size_t a, size_t b) {
  const int rank = c.value(y).rank();
  std::vector<int> dropped;
  if (c.rank(a) == 1) dropped.push_back(rank - 2);
  if (c.rank(b) == 1) dropped.push_back(rank - 1);
  return dropped.empty() ? y : squeeze(c.emit, y, dropped);
}

Status check_matrices(const NodeContext& c, size_t a, size_t b) {
  if (c.rank(a) == 0 || c.rank(b) == 0) return invalid_model("a scalar is no matrix");
  return {};
}

Status matmul_integer(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  RT_TRY(check_matrices(c, 0, 1));
  return c.result(squeeze_product(c, integer_product(c, 0, 1, per_row(c, 2), per_column(c, 3)), 0, 1));
}

ValueId as_f32(Emitter& emit, ValueId x) {
  return emit.value(x).dtype == DType::F32 ? x : emit.cast(x, DType::F32);
}

/// i32 sums of products whose factors have the scales a and b, in the scale and zero point of the result.
/// `along` is the axis of vectors among b's and the result's scales. One kernel where each channel has one
/// factor; bias: i32 like the sums.
ValueId requantize(NodeContext& c, ValueId sums, ValueId bias, ValueId a, ValueId b, ValueId y_scale,
                   ValueId y_zero, int64_t along) {
  Emitter& e = c.emit;
  const uint8_t to = static_cast<uint8_t>(e.value(y_zero).dtype);
  if (e.value(a).rank() == 0 && e.value(b).rank() <= 1 && e.value(y_scale).rank() == 0) {
    op::RequantizeAttributes attributes;
    attributes.to = to;
    const ValueId scale = e.mul(a, b);
    const ValueId offset = bias == kNoValue ? bias : e.mul(e.cast(bias, DType::F32), scale);
    return e.emit(std::move(attributes), {sums, scale, offset, y_scale, y_zero});
  }
  op::QuantizeLinearAttributes attributes;
  attributes.axis = along;
  attributes.to = to;
  if (bias != kNoValue) sums = e.add(sums, bias);
  return e.emit(attributes, {e.mul(e.cast(sums, DType::F32), e.mul(a, b)), y_scale, y_zero});
}

// (a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
Status qlinear_matmul(NodeContext& c) {
  RT_TRY(c.expect_inputs(8, 8));
  RT_TRY(check_matrices(c, 0, 3));
  if (c.rank(6) != c.rank(7)) return invalid_model("the result's scale and zero point have different ranks");
  const bool one = is_one_number(c.value(c.input(6)));
  if (!one && c.rank(6) != 1)
    return cannot("a scale of the result of rank ", c.rank(6), "; give one number, or one for each row");
  const ValueId sums = integer_product(c, 0, 3, per_row(c, 2), per_column(c, 5));
  const ValueId y_scale = as_f32(c.emit, one ? reshape_to(c.emit, c.input(6), {}) : c.input(6));
  const ValueId y_zero = one ? reshape_to(c.emit, c.input(7), {}) : c.input(7);
  const ValueId y = requantize(c, sums, kNoValue, as_f32(c.emit, per_row(c, 1)),
                               as_f32(c.emit, per_column(c, 4)), y_scale, y_zero, one ? -1 : -2);
  return c.result(squeeze_product(c, y, 0, 3));
}

/// The sums [N,S..,O] of input 0 with the weight that is input `weight`.
Result<ValueId> convolution(NodeContext& c, size_t weight, size_t x_zero, size_t weight_zero) {
  RT_ASSIGN(auto kernel, kernel_of(c, weight));
  RT_ASSIGN(const Window window, window_of(c, std::move(kernel), true));
  op::ConvIntegerAttributes attributes;
  attributes.strides = window.strides;
  attributes.pads = window.pads;
  attributes.dilations = window.dilations;
  attributes.groups = c.integer("group", 1);
  if (c.has(x_zero) && !is_one_number(c.value(c.input(x_zero))))
    return cannot("a zero point of the data of rank ", c.rank(x_zero), "; give one number");
  return c.emit.emit(attributes, {to_channels_last(c.emit, c.input(0)), weight_channels_last(c, weight),
                                  per_column(c, x_zero), per_column(c, weight_zero)});
}

Status conv_integer(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  RT_ASSIGN(const ValueId sums, convolution(c, 1, 2, 3));
  return c.result(to_channels_first(c.emit, sums));
}

// (x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, [bias i32])
Status qlinear_conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(8, 9));
  for (size_t i : {size_t{1}, size_t{6}, size_t{7}})
    if (!is_one_number(c.value(c.input(i))))
      return cannot("input ", i, " of rank ", c.rank(i), "; give one number");
  RT_ASSIGN(const ValueId sums, convolution(c, 3, 2, 5));
  const ValueId y =
      requantize(c, sums, c.input(8), as_f32(c.emit, per_column(c, 1)), as_f32(c.emit, per_column(c, 4)),
                 as_f32(c.emit, per_column(c, 6)), per_column(c, 7), -1);
  return c.result(to_channels_first(c.emit, y));
}

constexpr ImportRow kIntegerProductRows[] = {
    {"", "MatMulInteger", 10, kNewestOpset, matmul_integer},
    {"", "ConvInteger", 10, kNewestOpset, conv_integer},
    {"", "QLinearMatMul", 10, kNewestOpset, qlinear_matmul},
    {"", "QLinearConv", 10, kNewestOpset, qlinear_conv},
};

}  // namespace

std::span<const ImportRow> rows_integer_product() {
  return kIntegerProductRows;
}

}  // namespace rt::onnx
