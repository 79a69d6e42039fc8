// 8-bit integer matmuls and convolutions: MatMulInteger and ConvInteger; QLinearMatMul, QLinearConv and ONNX
// Runtime's QGemm, which requantize the accumulators; and ONNX Runtime's matmuls with float results.
#include "tools/onnx/integer_matmul.h"

#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/window.h"

namespace librt::onnx {
namespace {

bool is_one_number(const Value& value) {
  return value.rank() == 0 || (value.rank() == 1 && value.dims[0].extent == 1);
}

/// A scale or zero point of one element as a scalar, a per-row vector as a column.
ValueId per_row(NodeContext& c, size_t i) {
  if (!c.has(i)) return kNoValue;
  if (is_one_number(c.value(c.input(i)))) return reshape_to(c.emit, c.input(i), {});
  return c.rank(i) == 1 ? unsqueeze(c.emit, c.input(i), {{1}}) : c.input(i);
}
ValueId per_column(NodeContext& c, size_t i) {
  if (!c.has(i)) return kNoValue;
  return is_one_number(c.value(c.input(i))) ? reshape_to(c.emit, c.input(i), {}) : c.input(i);
}

/// Integer matmul of inputs a and b. Vectors become one row or one column, which squeeze_matmul() removes
/// again.
ValueId integer_matmul(NodeContext& c, size_t a, size_t b, ValueId a_zero, ValueId b_zero) {
  ValueId left = c.input(a), right = c.input(b);
  if (c.rank(a) == 1) left = unsqueeze(c.emit, left, {{0}});
  if (c.rank(b) == 1) right = unsqueeze(c.emit, right, {{1}});
  return c.emit.emit(op::MatMulIntegerAttributes{}, {left, right, a_zero, b_zero});
}
ValueId squeeze_matmul(NodeContext& c, ValueId y, size_t a, size_t b) {
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
  return c.result(squeeze_matmul(c, integer_matmul(c, 0, 1, per_row(c, 2), per_column(c, 3)), 0, 1));
}

ValueId as_f32(Emitter& emit, ValueId x) {
  return as_type(emit, x, DType::F32);
}

/// Requantizes i32 accumulators of operands with scales a and b to the scale and zero point of the result.
/// `along` is the axis of vectors among b's and the result's scales. One kernel where each channel has one
/// factor; bias: i32 like the accumulators.
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
    return cannot("a scale of the result of rank ", c.rank(6), "; give a scalar, or one for each row");
  const ValueId sums = integer_matmul(c, 0, 3, per_row(c, 2), per_column(c, 5));
  const ValueId y_scale = as_f32(c.emit, one ? reshape_to(c.emit, c.input(6), {}) : c.input(6));
  const ValueId y_zero = one ? reshape_to(c.emit, c.input(7), {}) : c.input(7);
  const ValueId y = requantize(c, sums, kNoValue, as_f32(c.emit, per_row(c, 1)),
                               as_f32(c.emit, per_column(c, 4)), y_scale, y_zero, one ? -1 : -2);
  return c.result(squeeze_matmul(c, y, 0, 3));
}

/// The i32 accumulators [N,S..,O] of input 0 convolved with input `weight`.
Result<ValueId> convolution(NodeContext& c, size_t weight, size_t x_zero, size_t weight_zero,
                            bool channels_last = false) {
  RT_ASSIGN(auto kernel, kernel_of(c, weight));
  const AutoPad auto_pad = channels_last ? AutoPad::Ignore : AutoPad::Apply;
  RT_ASSIGN(const Window window, window_of(c, std::move(kernel), true, auto_pad));
  op::ConvIntegerAttributes attributes;
  attributes.strides = window.strides;
  attributes.pads = window.pads;
  attributes.dilations = window.dilations;
  attributes.groups = c.integer("group", 1);
  if (c.has(x_zero) && !is_one_number(c.value(c.input(x_zero))))
    return cannot("a zero point of the data of rank ", c.rank(x_zero), "; give a scalar");
  const ValueId x = channels_last ? c.input(0) : to_channels_last(c.emit, c.input(0));
  return c.emit.emit(attributes,
                     {x, weight_channels_last(c, weight), per_column(c, x_zero), per_column(c, weight_zero)});
}

Status conv_integer(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  RT_ASSIGN(const ValueId sums, convolution(c, 1, 2, 3));
  return c.result(to_channels_first(c.emit, sums));
}

// (x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, [bias i32]); channels_last is ONNX Runtime's.
Status qlinear_conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(8, 9));
  const bool channels_last = !c.node.domain().empty() && c.integer("channels_last", 0) != 0;
  if (channels_last && c.string("auto_pad", "NOTSET").starts_with("SAME"))
    return cannot("auto_pad SAME with channels_last; give pads");
  for (size_t i : {size_t{1}, size_t{6}, size_t{7}})
    if (!is_one_number(c.value(c.input(i))))
      return cannot("input ", i, " of rank ", c.rank(i), "; give a scalar");
  RT_ASSIGN(const ValueId sums, convolution(c, 3, 2, 5, channels_last));
  const ValueId y =
      requantize(c, sums, c.input(8), as_f32(c.emit, per_column(c, 1)), as_f32(c.emit, per_column(c, 4)),
                 as_f32(c.emit, per_column(c, 6)), per_column(c, 7), -1);
  return c.result(channels_last ? y : to_channels_first(c.emit, y));
}

// (a, b, a_scale, b_scale, [a_zero], [b_zero], [bias])
Status matmul_integer_to_float(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 7));
  RT_TRY(check_matrices(c, 0, 1));
  const DType type = c.dtype(2);
  const ValueId bias = c.has(6) ? as_f32(c.emit, c.input(6)) : kNoValue;
  const ValueId y = scaled_integer_matmul(c, {c.input(0), c.input(2), c.input(4)},
                                          {c.input(1), c.input(3), c.input(5)}, bias);
  return c.result(type == DType::F32 ? y : c.emit.cast(y, type));
}

// (a f32, b, b_scale, [b_zero], [bias])
Status dynamic_quantize_matmul(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 5));
  RT_TRY(check_matrices(c, 0, 1));
  const IntegerFactor a = dynamically_quantized(c, c.input(0));
  return c.result(scaled_integer_matmul(c, a, {c.input(1), c.input(2), c.input(3)}, c.input(4)));
}

// (a, a_scale, a_zero, b, b_scale, b_zero, [addend i32], [y_scale], [y_zero]) -> alpha a b + addend, in f32
// without y_zero. The addend has the accumulators' scale.
Status quantized_gemm(NodeContext& c) {
  RT_TRY(c.expect_inputs(6, 9));
  Emitter& e = c.emit;
  if (c.rank(0) != 2 || c.rank(3) != 2)
    return invalid_model("expected two matrices, found ranks ", c.rank(0), " and ", c.rank(3));
  const auto matrix = [&](size_t i, std::string_view transpose) {
    return c.integer(transpose, 0) != 0 ? transposed(c.emit, c.input(i), {1, 0}) : c.input(i);
  };
  const ValueId a = matrix(0, "transA"), b = matrix(3, "transB");
  ValueId sums = e.emit(op::MatMulIntegerAttributes{}, {a, b, per_row(c, 2), per_column(c, 5)});
  ValueId a_scale = as_f32(e, per_row(c, 1));
  const ValueId b_scale = as_f32(e, per_column(c, 4));
  if (const float alpha = c.real("alpha", 1); alpha != 1)
    a_scale = e.mul(a_scale, e.scalar_like(alpha, a_scale));
  const bool vector = c.has(6) && c.rank(6) == 1 && !is_one_number(c.value(c.input(6)));
  if (c.has(6) && !vector) sums = e.add(sums, c.input(6));
  const ValueId bias = vector ? c.input(6) : kNoValue;
  if (c.has(8)) {
    if (!c.has(7)) return invalid_model("y_zero_point is given without y_scale");
    return c.result(
        requantize(c, sums, bias, a_scale, b_scale, as_f32(e, per_column(c, 7)), per_column(c, 8), -1));
  }
  if (bias != kNoValue) sums = e.add(sums, bias);
  return c.result(e.mul(e.cast(sums, DType::F32), e.mul(a_scale, b_scale)));
}

constexpr ImportRow kIntegerMatmulRows[] = {
    {"", "MatMulInteger", 10, kNewestOpset, matmul_integer},
    {"", "ConvInteger", 10, kNewestOpset, conv_integer},
    {"", "QLinearMatMul", 10, kNewestOpset, qlinear_matmul},
    {"", "QLinearConv", 10, kNewestOpset, qlinear_conv},
    {"com.microsoft", "QLinearConv", 1, kNewestOpset, qlinear_conv},
    {"com.microsoft", "QGemm", 1, kNewestOpset, quantized_gemm},
    {"com.microsoft", "MatMulIntegerToFloat", 1, kNewestOpset, matmul_integer_to_float},
    {"com.microsoft", "DynamicQuantizeMatMul", 1, kNewestOpset, dynamic_quantize_matmul},
};

}  // namespace

std::span<const ImportRow> rows_integer_matmul() {
  return kIntegerMatmulRows;
}

ValueId scaled_integer_matmul(NodeContext& c, const IntegerFactor& a, const IntegerFactor& b, ValueId bias) {
  Emitter& e = c.emit;
  const auto plain = [&](ValueId id) {
    if (id == kNoValue || e.value(id).rank() == 0 || !is_one_number(e.value(id))) return id;
    return reshape_to(e, id, {});
  };
  const ValueId sums =
      e.emit(op::MatMulIntegerAttributes{}, {a.values, b.values, plain(a.zero), plain(b.zero)});
  const ValueId scale = e.mul(as_f32(e, plain(a.scale)), as_f32(e, plain(b.scale)));
  const ValueId y = e.mul(e.cast(sums, DType::F32), scale);
  return bias == kNoValue ? y : e.add(y, bias);
}

IntegerFactor dynamically_quantized(NodeContext& c, ValueId x) {
  const auto parts = c.emit.emit_many(make_op(op::DynamicQuantizeLinearAttributes{}), std::array{x}, 3);
  return {parts[0], parts[1], parts[2]};
}

}  // namespace librt::onnx
