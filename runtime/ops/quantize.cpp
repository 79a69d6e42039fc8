// QuantizeLinear and DequantizeLinear: affine quantization; NarrowFloat: rounding to a narrower float format;
// FakeQuantize: quantization and dequantization in one, for training.
#include "runtime/geometry/quantization.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

constexpr DTypeSet kScaleTypes{DType::F32, DType::F16, DType::BF16};
constexpr DTypeSet kCodes{DType::I8, DType::U8, DType::I16, DType::U16};

/// Checks x's, the scale's and the zero point's shapes against each other; `codes` is the zero point's type.
Status check_groups(const NodeView& node, int64_t axis, int64_t block_size, DType quantized) {
  RT_TRY(scale_groups(node.shape(0), node.shape(1), axis, block_size).status());
  if (!node.has(2)) return {};
  return expect_dtype_and_shape(node, 2, "zero_point", DTypeSet(quantized), node.shape(1));
}

/// f(element, scale's index) for all elements.
template <class F>
void for_each_scaled(const ScaleGroups& groups, F&& f) {
  int64_t i = 0;
  for (int64_t outer = 0; outer < groups.outer; ++outer)
    for (int64_t at = 0; at < groups.extent; ++at)
      for (int64_t inner = 0; inner < groups.inner; ++inner) f(i++, groups.scale_of(outer, at, inner));
}

int64_t zero_point(std::span<const ConstTensorView> inputs, int64_t i) {
  if (inputs.size() < 3 || inputs[2].data == nullptr) return 0;
  return load_integer(inputs[2].data, inputs[2].info.dtype, i);
}

Status infer_quantize(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::QuantizeLinearAttributes>();
  const uint8_t to = attributes.to;
  if (to >= kDTypeCount || !kCodes.contains(static_cast<DType>(to)))
    return invalid_argument("expected one of ", kCodes, " as `to`, found value ", to);
  RT_TRY(expect_dtype(node, 0, "x", kScaleTypes | DTypeSet(DType::I32)));
  if (node.dtype(0) == DType::I32)
    RT_TRY(expect_dtype(node, 1, "scale of integers", DTypeSet(DType::F32)));
  else
    RT_TRY(expect_same_dtype(node, 1, "scale", 0, "x"));
  RT_TRY(check_groups(node, attributes.axis, attributes.block_size, static_cast<DType>(to)));
  return add_output(outputs, static_cast<DType>(to), node.shape(0));
}

/// x / scale in the scale's type, then to the nearest integer, ties to even; NaN counts as 0.
Status eval_quantize(const NodeView& node, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::QuantizeLinearAttributes>();
  RT_ASSIGN(const ScaleGroups groups,
            scale_groups(inputs[0].info.shape, inputs[1].info.shape, attributes.axis, attributes.block_size));
  const DType to = outputs[0].info.dtype, real = inputs[1].info.dtype;
  const double low = is_signed_integer(to) ? -std::ldexp(1.0, static_cast<int>(size_of(to)) * 8 - 1) : 0;
  const double high = low + std::ldexp(1.0, static_cast<int>(size_of(to)) * 8) - 1;
  const auto rounded = [&](double value) {
    std::byte bytes[sizeof(double)];
    store_element(bytes, real, 0, value);
    return load_element(bytes, real, 0);
  };
  for_each_scaled(groups, [&](int64_t i, int64_t group) {
    const double quotient = rounded(rounded(load(inputs[0], i)) / load(inputs[1], group));
    const double whole = std::isnan(quotient) ? 0 : std::nearbyint(quotient);
    const double code = whole + static_cast<double>(zero_point(inputs, group));
    store(outputs[0], i, std::min(std::max(code, low), high));
  });
  return {};
}

Status infer_dequantize(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::DequantizeLinearAttributes>();
  const uint8_t to = attributes.to;
  if (to >= kDTypeCount || !kScaleTypes.contains(static_cast<DType>(to)))
    return invalid_argument("expected one of ", kScaleTypes, " as `to`, found value ", to);
  RT_TRY(expect_dtype(node, 0, "x", kCodes | DTypeSet(DType::I32)));
  RT_TRY(expect_dtype(node, 1, "scale", kScaleTypes));
  RT_TRY(check_groups(node, attributes.axis, attributes.block_size, node.dtype(0)));
  return add_output(outputs, static_cast<DType>(to), node.shape(0));
}

Status eval_dequantize(const NodeView& node, std::span<const ConstTensorView> inputs,
                       std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::DequantizeLinearAttributes>();
  RT_ASSIGN(const ScaleGroups groups,
            scale_groups(inputs[0].info.shape, inputs[1].info.shape, attributes.axis, attributes.block_size));
  for_each_scaled(groups, [&](int64_t i, int64_t group) {
    const int64_t difference =
        load_integer(inputs[0].data, inputs[0].info.dtype, i) - zero_point(inputs, group);
    store(outputs[0], i, static_cast<double>(difference) * load(inputs[1], group));
  });
  return {};
}

// --- NarrowFloat

/// A float format of 4 or 8 bits.
struct Format {
  int mantissa;  ///< explicit mantissa bits
  int exponent;  ///< the smallest exponent of a normal number
  double largest;
  bool infinity, nan, minus_zero;
};
constexpr Format kFormats[] = {
    {3, -6, 448, false, true, true},      // Float8E4M3FN
    {3, -7, 240, false, true, false},     // Float8E4M3FNUZ
    {2, -14, 57344, true, true, true},    // Float8E5M2
    {2, -15, 57344, false, true, false},  // Float8E5M2FNUZ
    {1, 0, 6, false, false, true},        // Float4E2M1
};

Status infer_narrow(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto format = static_cast<size_t>(node.as<op::NarrowFloatAttributes>().format);
  if (format >= std::size(kFormats)) return invalid_argument("expected a known format, found value ", format);
  RT_TRY(expect_dtype(node, 0, "x", DTypeSet(DType::F32)));
  return infer_like_first(node, outputs);
}

double narrowed(const Format& format, double x, bool saturate) {
  if (std::isnan(x)) return format.nan ? x : -0.0;
  double y = x;
  if (std::isfinite(x) && x != 0) {
    const int exponent = std::max(std::ilogb(x), format.exponent);
    y = std::ldexp(std::nearbyint(std::ldexp(x, format.mantissa - exponent)), exponent - format.mantissa);
  }
  if (std::abs(y) > format.largest) {
    const double beyond =
        format.infinity ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    y = std::copysign(saturate || !format.nan ? format.largest : beyond, y);
  }
  return y == 0 && !format.minus_zero ? 0 : y;
}

Status eval_narrow(const NodeView& node, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::NarrowFloatAttributes>();
  const Format& format = kFormats[static_cast<size_t>(attributes.format)];
  for (int64_t i = 0; i < inputs[0].info.elements(); ++i)
    store(outputs[0], i, narrowed(format, load(inputs[0], i), attributes.saturate));
  return {};
}

// --- FakeQuantize

Status infer_fake(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const int64_t levels = node.as<op::FakeQuantizeAttributes>().levels;
  if (levels < 1 || levels > 65535) return invalid_argument("expected 1 to 65535 levels, found ", levels);
  for (size_t i = 0; i < 3; ++i)
    RT_TRY(expect_dtype(node, i, i == 0 ? "x" : i == 1 ? "low" : "high", DTypeSet(DType::F32)));
  for (size_t i = 1; i < 3; ++i) {
    RT_ASSIGN(const Shape shape, broadcast_shapes(node.shape(0), node.shape(i)));
    if (shape != node.shape(0))
      return invalid_argument("expected a range that broadcasts to x, of shape ", node.shape(0), ", found ",
                              node.shape(i));
  }
  return infer_like_first(node, outputs);
}

/// The quantization grid of a FakeQuantize: x becomes round(x / scale) scale, clipped to [least scale, most
/// scale].
struct FakeQuantized {
  ValueId scale, least, most;
  ValueId any;  ///< whether the range is not empty: high > low
};

FakeQuantized fake_quantized(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto levels = static_cast<double>(node.as<op::FakeQuantizeAttributes>().levels);
  const ValueId zero = e.scalar(0, DType::F32), count = e.scalar(levels, DType::F32);
  const ValueId low = e.emit(op::MinimumAttributes{}, {inputs[1], zero});
  const ValueId high = e.emit(op::MaximumAttributes{}, {inputs[2], zero});
  FakeQuantized quantized;
  quantized.scale =
      e.emit(op::MaximumAttributes{}, {e.div(e.sub(high, low), count), e.scalar(1e-20, DType::F32)});
  quantized.least = e.emit(op::RoundAttributes{}, {e.div(low, quantized.scale)});
  quantized.most = e.add(quantized.least, count);
  quantized.any = e.emit(op::GreaterAttributes{}, {high, low});
  return quantized;
}

std::vector<ValueId> body_of_fake(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const FakeQuantized quantized = fake_quantized(e, node, inputs);
  const ValueId nearest = e.emit(op::RoundAttributes{}, {e.div(inputs[0], quantized.scale)});
  const ValueId clipped = e.emit(
      op::MinimumAttributes{}, {e.emit(op::MaximumAttributes{}, {nearest, quantized.least}), quantized.most});
  return {e.emit(op::WhereAttributes{}, {quantized.any, e.mul(clipped, quantized.scale), inputs[0]})};
}

/// Values up to half a step beyond the last level are rounded to it, not clipped.
void gradient_of_fake(GradContext& c) {
  Emitter& e = c.emit;
  const FakeQuantized quantized = fake_quantized(e, c.node, c.node.inputs);
  const ValueId half = e.scalar(0.5, DType::F32);
  const ValueId least = e.mul(e.sub(quantized.least, half), quantized.scale);
  const ValueId most = e.mul(e.add(quantized.most, half), quantized.scale);
  const ValueId inside =
      e.emit(op::AndAttributes{}, {e.emit(op::GreaterOrEqualAttributes{}, {c.input(0), least}),
                                   e.emit(op::LessOrEqualAttributes{}, {c.input(0), most})});
  const ValueId none = e.emit(op::NotAttributes{}, {quantized.any});
  c.set(0, keep_where(e, e.emit(op::OrAttributes{}, {inside, none}), c.grad()));
}

}  // namespace

RT_PAGE(QuantizeLinear) = {.kind = OpKind::QuantizeLinear,
                           .inputs = {2, 3},
                           .infer = infer_quantize,
                           .cost = [](const NodeView& node) { return elementwise_cost(node, 3); },
                           .arithmetic = Arithmetic::PrecisionSensitive,
                           .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(QuantizeLinear) = {
    .eval = eval_quantize, .no_gradient = "the result is an integer", .domain = {0.25, 2}};

RT_PAGE(DequantizeLinear) = {.kind = OpKind::DequantizeLinear,
                             .inputs = {2, 3},
                             .infer = infer_dequantize,
                             .cost = [](const NodeView& node) { return elementwise_cost(node, 2); },
                             .arithmetic = Arithmetic::PrecisionSensitive,
                             .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(DequantizeLinear) = {.eval = eval_dequantize, .no_gradient = "integer input"};

RT_PAGE(NarrowFloat) = {.kind = OpKind::NarrowFloat,
                        .inputs = {1, 1},
                        .infer = infer_narrow,
                        .arithmetic = Arithmetic::PrecisionSensitive,
                        .form = Form::Unary};
// As for any Cast to fewer bits, rounding has a straight-through gradient.
RT_COMPILER_PAGE(NarrowFloat) = {.eval = eval_narrow, .gradient = [](GradContext& c) { c.set(0, c.grad()); }};

RT_PAGE(FakeQuantize) = {.kind = OpKind::FakeQuantize,
                         .inputs = {3, 3},
                         .infer = infer_fake,
                         .cost = [](const NodeView& node) { return elementwise_cost(node, 6); },
                         .composite = true,
                         .arithmetic = Arithmetic::PrecisionSensitive,
                         .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(FakeQuantize) = {.gradient = gradient_of_fake, .body = body_of_fake};

}  // namespace librt::ops
