// Fused quantized arithmetic: 8-bit matmul and convolution whose i32 accumulators are requantized in the same
// kernel, and the operators that stay in 8 bits between them. All are composites of integer matmuls or
// convolutions, QuantizeLinear and DequantizeLinear.
#include "runtime/geometry/function.h"
#include "runtime/geometry/matmul.h"
#include "runtime/geometry/quantization.h"

#include "runtime/ops/epilogue.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

constexpr DTypeSet kBytes{DType::U8, DType::I8};
constexpr int64_t kCodes = 256;

// --- requantization of accumulators

/// Where the operands of the requantization are among a node's inputs.
struct Requantized {
  size_t scale, bias, y_scale, y_zero;
};
constexpr Requantized kOfSums{1, 2, 3, 4}, kOfMatmul{2, 4, 5, 6};

Status check_epilogue(const op::EpilogueAttributes* epilogue) {
  if (epilogue == nullptr) return {};
  if (epilogue->has_bias || epilogue->has_residual)
    return invalid_argument("expected an epilogue without has_bias and has_residual: the bias is an operand");
  return check_activation(epilogue->activation);
}

/// Checks the requantization's operands and adds the result; the last axis of `sums` has `channels`.
Status infer_requantized(const NodeView& node, const op::EpilogueAttributes* epilogue, uint8_t type,
                         const Requantized& at, const Shape& sums, int64_t channels,
                         std::vector<TensorInfo>& outputs) {
  RT_TRY(check_epilogue(epilogue));
  constexpr DTypeSet kResults{DType::F32, DType::U8, DType::I8};
  if (type >= kDTypeCount || !kResults.contains(static_cast<DType>(type)))
    return invalid_argument("expected one of ", kResults, " as `to`, found value ", type);
  const auto to = static_cast<DType>(type);
  RT_TRY(expect_dtype(node, at.scale, "scale", DTypeSet(DType::F32)));
  if (node.shape(at.scale) != Shape{}) RT_TRY(expect_shape(node, at.scale, "scale", {channels}));
  if (node.has(at.bias))
    RT_TRY(expect_dtype_and_shape(node, at.bias, "bias", DTypeSet(DType::F32), {channels}));
  if (node.has(at.y_scale) != (to != DType::F32))
    return invalid_argument("expected a y_scale exactly where `to` is an integer");
  if (node.has(at.y_scale))
    RT_TRY(expect_dtype_and_shape(node, at.y_scale, "y_scale", DTypeSet(DType::F32), {}));
  if (node.has(at.y_zero)) RT_TRY(expect_dtype_and_shape(node, at.y_zero, "y_zero_point", DTypeSet(to), {}));
  return add_output(outputs, to, sums);
}

ValueId activated(Emitter& e, const op::EpilogueAttributes* epilogue, ValueId x) {
  const FunctionCall call = function_call(epilogue);
  if (call.function == Function::Identity) return x;
  return e.emit_many(operator_of(call), std::array{x}, 1)[0];
}

ValueId quantized(Emitter& e, ValueId x, DType to, ValueId scale, ValueId zero) {
  op::QuantizeLinearAttributes attributes;
  attributes.to = static_cast<uint8_t>(to);
  return e.emit(attributes, {x, scale, zero});
}

/// With one scale, or a vector of those of the last axis.
ValueId dequantized(Emitter& e, ValueId x, ValueId scale, ValueId zero) {
  op::DequantizeLinearAttributes attributes;
  attributes.axis = -1;
  attributes.to = static_cast<uint8_t>(DType::F32);
  return e.emit(attributes, {x, scale, zero});
}

ValueId at_or_none(std::span<const ValueId> inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : kNoValue;
}

// --- Requantize

Status infer_requantize(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype_and_rank(node, 0, "x", DTypeSet{DType::I32, DType::U8, DType::I8}, 1));
  const Shape& sums = node.shape(0);
  const auto& attributes = node.as<op::RequantizeAttributes>();
  return infer_requantized(node, attributes.epilogue.get(), attributes.to, kOfSums, sums, sums.back(),
                           outputs);
}

std::vector<ValueId> body_of_requantize(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::RequantizeAttributes>();
  const auto to = static_cast<DType>(attributes.to);
  ValueId real = kNoValue;
  if (e.value(inputs[0]).dtype == DType::I32)
    real = e.mul(e.cast(inputs[0], DType::F32), inputs[1]);
  else
    real = dequantized(e, inputs[0], inputs[1], kNoValue);
  if (const ValueId bias = at_or_none(inputs, kOfSums.bias); bias != kNoValue) real = e.add(real, bias);
  real = activated(e, attributes.epilogue.get(), real);
  if (to == DType::F32) return {real};
  return {quantized(e, real, to, inputs[kOfSums.y_scale], at_or_none(inputs, kOfSums.y_zero))};
}

/// The Requantize of `sums` that a QuantizedConv or QuantizedMatMul ends with.
template <class Attributes>
ValueId requantize(Emitter& e, const Attributes& attributes, ValueId sums, std::span<const ValueId> inputs) {
  op::RequantizeAttributes last;
  last.to = attributes.to;
  if (attributes.epilogue != nullptr)
    last.epilogue = std::make_unique<op::EpilogueAttributes>(*attributes.epilogue);
  return e.emit(std::move(last),
                {sums, inputs[kOfMatmul.scale], at_or_none(inputs, kOfMatmul.bias),
                 at_or_none(inputs, kOfMatmul.y_scale), at_or_none(inputs, kOfMatmul.y_zero)});
}

// --- matmul and convolution

Status check_factors(const NodeView& node) {
  RT_TRY(expect_dtype(node, 0, "x", kBytes));
  RT_TRY(expect_dtype(node, 1, "weight", DTypeSet(DType::I8)));
  if (node.has(3)) RT_TRY(expect_same_dtype(node, 3, "x_zero_point", 0, "x"));
  return {};
}

Result<ConvGeometry> geometry_of(const NodeView& node) {
  return conv_geometry(node.shape(0), node.shape(1),
                       as_conv(as_integer(node.as<op::QuantizedConvAttributes>())));
}

Status infer_quantized_conv(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_factors(node));
  RT_ASSIGN(const ConvGeometry geometry, geometry_of(node));
  if (node.has(3)) RT_TRY(expect_shape(node, 3, "x_zero_point", {}));
  const auto& attributes = node.as<op::QuantizedConvAttributes>();
  return infer_requantized(node, attributes.epilogue.get(), attributes.to, kOfMatmul, geometry.output_shape(),
                           geometry.output_channels, outputs);
}

std::vector<ValueId> body_of_quantized_conv(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::QuantizedConvAttributes>();
  const ValueId sums = e.emit(as_integer(attributes), {inputs[0], inputs[1], at_or_none(inputs, 3)});
  return {requantize(e, attributes, sums, inputs)};
}

Status infer_quantized_matmul(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_factors(node));
  RT_TRY(expect_rank(node, 0, "x", 2));
  RT_TRY(expect_rank(node, 1, "weight", 2));
  RT_ASSIGN(const MatMulGeometry geometry, matmul_geometry(node.shape(0), node.shape(1), {}));
  if (node.has(3) && node.shape(3) != Shape{}) {
    Shape most = node.shape(0);
    most[most.rank() - 1] = 1;
    RT_TRY(expect_shape(node, 3, "x_zero_point", most));
  }
  const auto& attributes = node.as<op::QuantizedMatMulAttributes>();
  return infer_requantized(node, attributes.epilogue.get(), attributes.to, kOfMatmul, geometry.result,
                           geometry.n, outputs);
}

std::vector<ValueId> body_of_quantized_matmul(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const ValueId sums = e.emit(op::MatMulIntegerAttributes{}, {inputs[0], inputs[1], at_or_none(inputs, 3)});
  return {requantize(e, node.as<op::QuantizedMatMulAttributes>(), sums, inputs)};
}

Cost cost_of_matmul(const NodeView& node, double multiply_adds) {
  Cost cost = elementwise_cost(node, 4);
  cost.flops += 2 * multiply_adds;
  return cost;
}

Cost cost_quantized_conv(const NodeView& node) {
  const auto geometry = geometry_of(node);
  return cost_of_matmul(node, geometry.ok() ? geometry->multiply_adds() : 0);
}

Cost cost_quantized_matmul(const NodeView& node) {
  const auto geometry = matmul_geometry(node.shape(0), node.shape(1), {});
  return cost_of_matmul(node, geometry.ok() ? static_cast<double>(geometry->result.elements()) *
                                                  static_cast<double>(geometry->k)
                                            : 0);
}

// --- QuantizedAdd

Status infer_quantized_add(const NodeView& node, std::vector<TensorInfo>& outputs) {
  constexpr const char* kScales[] = {"a_scale", "b_scale", "y_scale"};
  constexpr const char* kZeros[] = {"a_zero_point", "b_zero_point", "y_zero_point"};
  RT_TRY(check_epilogue(node.as<op::QuantizedAddAttributes>().epilogue.get()));
  RT_TRY(expect_dtype(node, 0, "a", kBytes));
  RT_TRY(expect_dtype_and_shape(node, 1, "b", kBytes, node.shape(0)));
  for (size_t i = 0; i < 3; ++i) {
    RT_TRY(expect_dtype_and_shape(node, 2 + 2 * i, kScales[i], DTypeSet(DType::F32), {}));
    RT_TRY(expect_dtype_and_shape(node, 3 + 2 * i, kZeros[i], i < 2 ? DTypeSet(node.dtype(i)) : kBytes, {}));
  }
  return add_output(outputs, node.dtype(7), node.shape(0));
}

std::vector<ValueId> body_of_quantized_add(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const ValueId sum =
      e.add(dequantized(e, inputs[0], inputs[2], inputs[3]), dequantized(e, inputs[1], inputs[4], inputs[5]));
  const ValueId real = activated(e, node.as<op::QuantizedAddAttributes>().epilogue.get(), sum);
  return {quantized(e, real, e.value(inputs[7]).dtype, inputs[6], inputs[7])};
}

// --- Lookup

Status infer_lookup(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", kBytes));
  RT_TRY(expect_shape(node, 1, "table", {kCodes}));
  return add_output(outputs, node.dtype(1), node.shape(0));
}

std::vector<ValueId> body_of_lookup(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  return {e.emit(op::GatherAttributes{}, {inputs[1], e.cast(inputs[0], DType::I32)})};
}

// --- DynamicQuantizeLinear

Status infer_dynamic(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", DTypeSet(DType::F32)));
  RT_TRY(add_output(outputs, DType::U8, node.shape(0)));
  RT_TRY(add_output(outputs, DType::F32, {}));
  return add_output(outputs, DType::U8, {});
}

/// scale = (max(x, 0) - min(x, 0)) / 255, zero_point = round(clip(-min(x, 0) / scale)).
std::vector<ValueId> body_of_dynamic(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  const ValueId x = inputs[0], zero = e.scalar_like(0, x);
  op::ReduceMaxAttributes largest;
  op::ReduceMinAttributes least;
  largest.keep_dims = least.keep_dims = false;
  const ValueId high = e.emit(op::MaximumAttributes{}, {e.emit(largest, {x}), zero});
  const ValueId low = e.emit(op::MinimumAttributes{}, {e.emit(least, {x}), zero});
  const ValueId scale = e.div(e.sub(high, low), e.scalar_like(255, x));
  op::ClipAttributes range;
  range.minimum = 0;
  range.maximum = 255;
  const ValueId position = e.emit(range, {e.div(e.sub(zero, low), scale)});
  const ValueId zero_point = e.cast(e.emit(op::RoundAttributes{}, {position}), DType::U8);
  return {quantized(e, x, DType::U8, scale, zero_point), scale, zero_point};
}

/// Results that are rounded once may differ by one step from those with intermediate rounding.
constexpr Tolerance kOneStep{1e-5, 1.0};
constexpr const char* kInteger = "integer inputs";

}  // namespace

RT_PAGE(Requantize) = {.kind = OpKind::Requantize,
                       .inputs = {2, 5},
                       .infer = infer_requantize,
                       .cost = [](const NodeView& node) { return elementwise_cost(node, 4); },
                       .composite = true,
                       .arithmetic = Arithmetic::PrecisionSensitive,
                       .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(Requantize) = {
    .no_gradient = kInteger, .body = body_of_requantize, .domain = {0.25, 2}, .tolerance = kOneStep};

RT_PAGE(QuantizedConv) = {.kind = OpKind::QuantizedConv,
                          .inputs = {3, 7},
                          .infer = infer_quantized_conv,
                          .cost = cost_quantized_conv,
                          .composite = true,
                          .arithmetic = Arithmetic::PrecisionSensitive,
                          .extents = ExtentRule::Own};
RT_COMPILER_PAGE(QuantizedConv) = {
    .no_gradient = kInteger, .body = body_of_quantized_conv, .domain = {0, 31}, .tolerance = kOneStep};

RT_PAGE(QuantizedMatMul) = {.kind = OpKind::QuantizedMatMul,
                            .inputs = {3, 7},
                            .infer = infer_quantized_matmul,
                            .cost = cost_quantized_matmul,
                            .composite = true,
                            .arithmetic = Arithmetic::PrecisionSensitive,
                            .extents = ExtentRule::Own};
RT_COMPILER_PAGE(QuantizedMatMul) = {
    .no_gradient = kInteger, .body = body_of_quantized_matmul, .domain = {0, 31}, .tolerance = kOneStep};

RT_PAGE(QuantizedAdd) = {.kind = OpKind::QuantizedAdd,
                         .inputs = {8, 8},
                         .infer = infer_quantized_add,
                         .cost = [](const NodeView& node) { return elementwise_cost(node, 8); },
                         .composite = true,
                         .arithmetic = Arithmetic::PrecisionSensitive,
                         .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(QuantizedAdd) = {
    .no_gradient = kInteger, .body = body_of_quantized_add, .domain = {0, 31}, .tolerance = kOneStep};

RT_PAGE(Lookup) = {.kind = OpKind::Lookup,
                   .inputs = {2, 2},
                   .infer = infer_lookup,
                   .composite = true,
                   .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(Lookup) = {.no_gradient = kInteger, .body = body_of_lookup, .domain = {0, 31}};

RT_PAGE(DynamicQuantizeLinear) = {.kind = OpKind::DynamicQuantizeLinear,
                                  .inputs = {1, 1},
                                  .outputs = {3, 3},
                                  .infer = infer_dynamic,
                                  .cost = [](const NodeView& node) { return elementwise_cost(node, 5); },
                                  .composite = true,
                                  .arithmetic = Arithmetic::PrecisionSensitive,
                                  .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(DynamicQuantizeLinear) = {
    .no_gradient = "the range of its integers, which the scale follows, has no gradient",
    .body = body_of_dynamic,
    .tolerance = kOneStep};

}  // namespace librt::ops
