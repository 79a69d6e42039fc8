// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear; Quant and BipolarQuant of QONNX.
#include <cmath>

#include "tools/onnx/narrow.h"
#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

constexpr DTypeSet kReals{DType::F32, DType::F16, DType::BF16};

struct Grouping {
  int64_t axis = 1;
  int64_t block_size = 0;
  ValueId scale = kNoValue, zero_point = kNoValue;  ///< scalars if per tensor
};

bool one_number(const Value& value) {
  return value.rank() == 0 || (value.rank() == 1 && value.dims[0].extent == 1);
}

Result<Grouping> grouping_of(NodeContext& c) {
  Grouping grouping{c.integer("axis", 1), c.integer("block_size", 0), c.input(1), c.input(2)};
  const bool one = one_number(c.value(grouping.scale));
  // ONNX Runtime's operators of these names are of version 1 and support axes.
  if (c.node.domain().empty() && c.opset < 13 && !one)
    return invalid_model("before opset 13 the scale is one number, found rank ", c.rank(1));
  if (c.has(2) && one != one_number(c.value(grouping.zero_point)))
    return invalid_model("the scale, of rank ", c.rank(1), ", and the zero point, of rank ", c.rank(2),
                         ", have different shapes");
  if (!one || grouping.block_size != 0) return grouping;
  if (c.rank(1) != 0) grouping.scale = reshape_to(c.emit, grouping.scale, {});
  if (c.has(2) && c.rank(2) != 0) grouping.zero_point = reshape_to(c.emit, grouping.zero_point, {});
  return grouping;
}

// The scale reshaped to broadcast to x, for arithmetic with narrow floats.
Result<ValueId> broadcast_scale(NodeContext& c, ValueId scale, const Grouping& grouping) {
  const int scale_rank = c.value(scale).rank();
  if (grouping.block_size == 0) {
    if (scale_rank == 0) return scale;
    RT_ASSIGN(const int axis, c.axis(grouping.axis, c.rank()));
    std::vector<int64_t> column(static_cast<size_t>(c.rank() - axis), 1);
    column[0] = -1;
    return c.emit.reshape(scale, c.emit.ints(column));
  }
  RT_ASSIGN(const int axis, c.axis(grouping.axis, c.rank()));
  const int64_t extent = c.extent(0, axis);
  if (extent < 0) return cannot("blocks along an axis of unknown extent; fix it with --dim");
  std::vector<int64_t> block_of(static_cast<size_t>(extent));
  for (size_t i = 0; i < block_of.size(); ++i) block_of[i] = static_cast<int64_t>(i) / grouping.block_size;
  op::GatherAttributes gather;
  gather.axis = axis;
  return c.emit.emit(gather, {scale, c.emit.ints(block_of)});
}

// The type of the result: the zero point's, or output_dtype, or u8.
Result<OnnxType> target_of(NodeContext& c) {
  const int64_t wanted = c.integer("output_dtype", 0);
  if (!c.has(2)) return wanted != 0 ? onnx_type(wanted) : Result<OnnxType>(OnnxType{DType::U8});
  const OnnxType target = type_of_input(c, 2);
  if (wanted == 0) return target;
  RT_ASSIGN(const OnnxType named, onnx_type(wanted));
  if (named.dtype != target.dtype || named.narrow != target.narrow)
    return invalid_model("output_dtype is ", tools::onnx_type_name(static_cast<int>(wanted)),
                         ", which is not the zero point's type");
  return target;
}

Status quantize(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  RT_ASSIGN(const Grouping grouping, grouping_of(c));
  RT_ASSIGN(const OnnxType target, target_of(c));
  const bool saturate = c.integer("saturate", 1) != 0;
  // The division is done in this type.
  DType real = c.dtype(1);
  if (const int64_t precision = c.integer("precision", 0); precision != 0) {
    RT_ASSIGN(const OnnxType named, onnx_type(precision));
    real = named.dtype;
  }
  if (!kReals.contains(real))
    return cannot("a precision of ", name_of(real), "; use float, float16 or bfloat16");
  ValueId x = c.input(0);
  if (c.dtype(0) != real && !(c.dtype(0) == DType::I32 && real == DType::F32)) x = c.emit.cast(x, real);
  const ValueId scale = c.dtype(1) == real ? grouping.scale : c.emit.cast(grouping.scale, real);
  ValueId y = kNoValue;
  if (target.narrow_float()) {  // whose zero point is 0
    if (c.value(x).dtype == DType::I32) x = c.emit.cast(x, real);
    RT_ASSIGN(const ValueId divisor, broadcast_scale(c, scale, grouping));
    y = to_narrow_float(c.emit, c.emit.div(x, divisor), *target.narrow, saturate);
  } else {
    op::QuantizeLinearAttributes attributes;
    attributes.axis = grouping.axis;
    attributes.block_size = grouping.block_size;
    attributes.to = static_cast<uint8_t>(target.dtype);
    y = c.emit.emit(attributes, {x, scale, grouping.zero_point});
    if (target.narrow != nullptr) y = saturated(c.emit, y, *target.narrow);
  }
  c.set_narrow_type(y, target.narrow != nullptr ? target.narrow->onnx : 0);
  return c.result(y);
}

Status dequantize(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  RT_ASSIGN(const Grouping grouping, grouping_of(c));
  OnnxType target{c.dtype(1)};
  if (const int64_t wanted = c.integer("output_dtype", 0); wanted != 0) {
    RT_ASSIGN(target, onnx_type(wanted));
  }
  if (target.narrow != nullptr || !kReals.contains(target.dtype))
    return cannot("a result of type ", name_of(target.dtype), "; use float, float16 or bfloat16");
  ValueId y = kNoValue;
  if (c.dtype(0) == DType::F16) {  // narrow floats, whose zero point is 0
    RT_ASSIGN(const ValueId factor, broadcast_scale(c, c.emit.cast(grouping.scale, DType::F32), grouping));
    y = c.emit.mul(c.emit.cast(c.input(0), DType::F32), factor);
    if (target.dtype != DType::F32) y = c.emit.cast(y, target.dtype);
  } else {
    op::DequantizeLinearAttributes attributes;
    attributes.axis = grouping.axis;
    attributes.block_size = grouping.block_size;
    attributes.to = static_cast<uint8_t>(target.dtype);
    y = c.emit.emit(attributes, {c.input(0), grouping.scale, grouping.zero_point});
  }
  c.set_narrow_type(y, 0);
  return c.result(y);
}

Status dynamic_quantize(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.outputs = c.emit.emit_many(make_op(op::DynamicQuantizeLinearAttributes{}), std::array{c.input(0)}, 3);
  return {};
}

// --- QONNX: values of any number of bits, kept as floats (qonnx.custom_op.general, of Brevitas)

Result<ValueId> rounded_to_integer(NodeContext& c, ValueId x) {
  Emitter& e = c.emit;
  const std::string mode = c.string("rounding_mode", "ROUND");
  if (mode == "ROUND" || mode == "HALF_EVEN") return e.emit(op::RoundAttributes{}, {x});
  if (mode == "FLOOR") return e.emit(op::FloorAttributes{}, {x});
  if (mode == "CEIL") return e.emit(op::CeilAttributes{}, {x});
  if (mode != "ROUND_TO_ZERO" && mode != "DOWN")
    return cannot("rounding_mode '", mode, "'; export with ROUND, FLOOR, CEIL or ROUND_TO_ZERO");
  const ValueId size = e.emit(op::FloorAttributes{}, {e.emit(op::AbsAttributes{}, {x})});
  return e.mul(e.emit(op::SignAttributes{}, {x}), size);
}

/// (clip(round(x / scale + zero point)) - zero point) scale.
Status quantized_values(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 4));
  RT_ASSIGN(const std::vector<double> width, c.known_reals(3, "the bit width"));
  // Wider integers are not floats.
  constexpr double kMostBits = 24;
  if (width.size() != 1 || !(width[0] >= 1 && width[0] <= kMostBits) || width[0] != std::floor(width[0]))
    return cannot("a bit width that is not one whole number between 1 and ", kMostBits);
  const bool is_signed = c.integer("signed", 1) != 0, is_narrow = c.integer("narrow", 0) != 0;
  if (is_signed && width[0] == 1) return cannot("one signed bit; export BipolarQuant");
  const double steps = std::exp2(width[0] - (is_signed ? 1 : 0)), narrowed = is_narrow ? 1 : 0;
  Emitter& e = c.emit;
  const DType dtype = c.dtype();
  const ValueId scale = as_type(e, c.input(1), dtype), zero_point = as_type(e, c.input(2), dtype);
  RT_ASSIGN(ValueId y, rounded_to_integer(c, e.add(e.div(c.input(0), scale), zero_point)));
  op::ClipAttributes range;
  range.minimum = static_cast<float>(is_signed ? narrowed - steps : 0);
  range.maximum = static_cast<float>(steps - 1 - (is_signed ? 0 : narrowed));
  y = e.emit(range, {y});
  return c.result(e.mul(e.sub(y, zero_point), scale));
}

/// The scale, with the sign of x.
Status quantized_signs(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  Emitter& e = c.emit;
  const ValueId scale = as_type(e, c.input(1), c.dtype());
  const ValueId ratio = e.div(c.input(0), scale);
  const ValueId is_positive = e.emit(op::GreaterOrEqualAttributes{}, {ratio, e.scalar_like(0, ratio)});
  const ValueId signs =
      e.emit(op::WhereAttributes{}, {is_positive, e.scalar_like(1, ratio), e.scalar_like(-1, ratio)});
  return c.result(e.mul(signs, scale));
}

#define RT_QONNX(domain)                                         \
  {domain, "Quant", 1, kNewestOpset, quantized_values},          \
      {domain, "IntQuant", 1, kNewestOpset, quantized_values}, { \
    domain, "BipolarQuant", 1, kNewestOpset, quantized_signs     \
  }
constexpr ImportRow kQuantizeRows[] = {
    RT_QONNX("qonnx.custom_op.general"),
    RT_QONNX("onnx.brevitas"),
    RT_QONNX("finn.custom_op.general"),
    {"", "QuantizeLinear", 10, kNewestOpset, quantize},
    {"", "DequantizeLinear", 10, kNewestOpset, dequantize},
    {"com.microsoft", "QuantizeLinear", 1, kNewestOpset, quantize},
    {"com.microsoft", "DequantizeLinear", 1, kNewestOpset, dequantize},
    {"", "DynamicQuantizeLinear", 11, kNewestOpset, dynamic_quantize},
};

#undef RT_QONNX

}  // namespace

std::span<const ImportRow> rows_quantize() {
  return kQuantizeRows;
}

}  // namespace librt::onnx
