// Element-wise arithmetic, comparison and logic.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

template <class Attributes>
Status unary(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  return c.result(c.emit.emit(Attributes{}, {c.input(0)}));
}

// Before opset 7 the second operand is broadcast only on request, its first dimension aligned with `axis`.
Status old_broadcast(NodeContext& c, ValueId& b) {
  if (c.opset >= 7) return {};
  c.ignore({"consumed_inputs"});
  const int64_t axis = c.integer("axis", c.rank(0) - c.rank(1));
  if (c.integer("broadcast", 0) == 0) return {};
  const int64_t trailing = c.rank(0) - (axis < 0 ? axis + c.rank(0) : axis) - c.rank(1);
  if (trailing < 0)
    return invalid_model("axis ", axis, " does not place rank ", c.rank(1), " in rank ", c.rank(0));
  std::vector<int> axes;
  for (int i = 0; i < trailing; ++i) axes.push_back(c.rank(1) + i);
  if (!axes.empty()) b = unsqueeze(c.emit, b, axes);
  return {};
}

template <class Attributes>
Status binary(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  ValueId b = c.input(1);
  RT_TRY(old_broadcast(c, b));
  return c.result(c.emit.emit(Attributes{}, {c.input(0), b}));
}

Status mod(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  op::ModAttributes attributes;
  attributes.truncated = c.integer("fmod", 0) != 0;
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1)}));
}

// The result has the base's type; the exponent may have another.
Status pow(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  ValueId exponent = c.input(1);
  RT_TRY(old_broadcast(c, exponent));
  const DType base = c.dtype(0);
  const DType other = c.dtype(1);
  if (base == other || is_float(base) || is_integer(other)) {
    if (base != other) exponent = c.emit.cast(exponent, base);
    return c.result(c.emit.emit(op::PowAttributes{}, {c.input(0), exponent}));
  }
  const ValueId power = c.emit.emit(op::PowAttributes{}, {c.emit.cast(c.input(0), other), exponent});
  return c.result(c.emit.cast(power, base));
}

template <class Attributes>
ValueId fold(NodeContext& c) {
  ValueId all = c.input(0);
  for (size_t i = 1; i < c.inputs.size(); ++i) all = c.emit.emit(Attributes{}, {all, c.input(i)});
  return all;
}

template <class Attributes>
Status variadic(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, std::numeric_limits<size_t>::max()));
  c.ignore({"consumed_inputs"});
  return c.result(fold<Attributes>(c));
}

Status mean(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, std::numeric_limits<size_t>::max()));
  c.ignore({"consumed_inputs"});
  const ValueId sum = fold<op::AddAttributes>(c);
  return c.result(c.emit.div(sum, c.emit.scalar(static_cast<double>(c.inputs.size()), c.dtype())));
}

ValueId clip(NodeContext& c, ValueId x, std::optional<double> low, std::optional<double> high) {
  const DType dtype = c.value(x).dtype;
  const bool fits = dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
  if (fits && low.value_or(-INFINITY) <= high.value_or(INFINITY)) {
    op::ClipAttributes attributes;
    attributes.minimum = static_cast<float>(low.value_or(-INFINITY));
    attributes.maximum = static_cast<float>(high.value_or(INFINITY));
    return c.emit.emit(attributes, {x});
  }
  if (low) x = c.emit.emit(op::MaximumAttributes{}, {x, c.emit.scalar(*low, dtype)});
  if (high) x = c.emit.emit(op::MinimumAttributes{}, {x, c.emit.scalar(*high, dtype)});
  return x;
}

Status clip_attributes(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  std::optional<double> low;
  std::optional<double> high;
  if (c.attribute("min") != nullptr) low = c.real("min", 0);
  if (c.attribute("max") != nullptr) high = c.real("max", 0);
  return c.result(low || high ? clip(c, c.input(0), low, high) : c.input(0));
}

Status clip_inputs(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 3));
  std::optional<double> bounds[2];
  bool known = true;
  for (size_t i = 1; i <= 2; ++i) {
    if (!c.has(i)) continue;
    // 64-bit bounds may not be exact in double.
    const bool wide = c.dtype(i) == DType::I64 || c.dtype(i) == DType::U64;
    const auto number = c.known_reals(i, "bound");
    if (wide || !number.ok() || number->size() != 1)
      known = false;
    else
      bounds[i - 1] = number->front();
  }
  if (known) return c.result(bounds[0] || bounds[1] ? clip(c, c.input(0), bounds[0], bounds[1]) : c.input(0));
  ValueId x = c.input(0);
  if (c.has(1)) x = c.emit.emit(op::MaximumAttributes{}, {x, c.input(1)});
  if (c.has(2)) x = c.emit.emit(op::MinimumAttributes{}, {x, c.input(2)});
  return c.result(x);
}

Status is_nan(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId same = c.emit.emit(op::EqualAttributes{}, {c.input(0), c.input(0)});
  return c.result(c.emit.emit(op::NotAttributes{}, {same}));
}

Status is_inf(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const bool negative = c.integer("detect_negative", 1) != 0;
  const bool positive = c.integer("detect_positive", 1) != 0;
  const ValueId x = c.input(0);
  const ValueId infinity = c.emit.scalar_like(INFINITY, x);
  if (negative && positive)
    return c.result(c.emit.emit(op::EqualAttributes{}, {c.emit.emit(op::AbsAttributes{}, {x}), infinity}));
  if (positive) return c.result(c.emit.emit(op::EqualAttributes{}, {x, infinity}));
  if (negative) return c.result(c.emit.emit(op::EqualAttributes{}, {x, c.emit.scalar_like(-INFINITY, x)}));
  return c.result(
      c.emit.emit(op::LessAttributes{}, {c.emit.emit(op::AbsAttributes{}, {x}), c.emit.scalar_like(0, x)}));
}

Status bit_shift(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const std::string direction = c.string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return invalid_model("direction: expected LEFT or RIGHT, found ", direction);
  op::BitShiftAttributes attributes;
  attributes.left = direction == "LEFT";
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1)}));
}

// x xor all ones
Status bitwise_not(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const TensorInfo info{.dtype = c.dtype(), .shape = {}};
  const ValueId ones =
      c.emit.constant(info, Blob::own(std::vector<std::byte>(info.bytes(), std::byte{0xff})));
  return c.result(c.emit.emit(op::BitwiseXorAttributes{}, {c.input(0), ones}));
}

Status tan(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId x = c.input(0);
  return c.result(c.emit.div(c.emit.emit(op::SinAttributes{}, {x}), c.emit.emit(op::CosAttributes{}, {x})));
}

// sinh and cosh: (exp(x) -+ exp(-x)) / 2.
template <bool kMinus>
Status hyperbolic(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId x = c.input(0);
  const ValueId up = c.emit.emit(op::ExpAttributes{}, {x});
  const ValueId down = c.emit.emit(op::ExpAttributes{}, {c.emit.neg(x)});
  const ValueId both = kMinus ? c.emit.sub(up, down) : c.emit.add(up, down);
  return c.result(c.emit.mul(both, c.emit.scalar_like(0.5, x)));
}

Status where(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  return c.result(c.emit.emit(op::WhereAttributes{}, {c.input(0), c.input(1), c.input(2)}));
}

constexpr ImportRow kElementwiseRows[] = {
    {"", "Abs", 1, kNewestOpset, unary<op::AbsAttributes>},
    {"", "Neg", 1, kNewestOpset, unary<op::NegAttributes>},
    {"", "Exp", 1, kNewestOpset, unary<op::ExpAttributes>},
    {"", "Log", 1, kNewestOpset, unary<op::LogAttributes>},
    {"", "Sqrt", 1, kNewestOpset, unary<op::SqrtAttributes>},
    {"", "Reciprocal", 1, kNewestOpset, unary<op::ReciprocalAttributes>},
    {"", "Sin", 7, kNewestOpset, unary<op::SinAttributes>},
    {"", "Cos", 7, kNewestOpset, unary<op::CosAttributes>},
    {"", "Tan", 7, kNewestOpset, tan},
    {"", "Sinh", 9, kNewestOpset, hyperbolic<true>},
    {"", "Cosh", 9, kNewestOpset, hyperbolic<false>},
    {"", "Erf", 9, kNewestOpset, unary<op::ErfAttributes>},
    {"", "Floor", 1, kNewestOpset, unary<op::FloorAttributes>},
    {"", "Ceil", 1, kNewestOpset, unary<op::CeilAttributes>},
    {"", "Round", 11, kNewestOpset, unary<op::RoundAttributes>},
    {"", "Sign", 9, kNewestOpset, unary<op::SignAttributes>},
    {"", "Not", 1, kNewestOpset, unary<op::NotAttributes>},
    {"", "Add", 1, kNewestOpset, binary<op::AddAttributes>},
    {"", "Sub", 1, kNewestOpset, binary<op::SubAttributes>},
    {"", "Mul", 1, kNewestOpset, binary<op::MulAttributes>},
    {"", "Div", 1, kNewestOpset, binary<op::DivAttributes>},
    {"", "Mod", 10, kNewestOpset, mod},
    {"", "Pow", 1, kNewestOpset, pow},
    {"", "Equal", 1, kNewestOpset, binary<op::EqualAttributes>},
    {"", "Less", 1, kNewestOpset, binary<op::LessAttributes>},
    {"", "LessOrEqual", 12, kNewestOpset, binary<op::LessOrEqualAttributes>},
    {"", "Greater", 1, kNewestOpset, binary<op::GreaterAttributes>},
    {"", "GreaterOrEqual", 12, kNewestOpset, binary<op::GreaterOrEqualAttributes>},
    {"", "And", 1, kNewestOpset, binary<op::AndAttributes>},
    {"", "Or", 1, kNewestOpset, binary<op::OrAttributes>},
    {"", "Xor", 1, kNewestOpset, binary<op::XorAttributes>},
    {"", "BitwiseAnd", 18, kNewestOpset, binary<op::BitwiseAndAttributes>},
    {"", "BitwiseOr", 18, kNewestOpset, binary<op::BitwiseOrAttributes>},
    {"", "BitwiseXor", 18, kNewestOpset, binary<op::BitwiseXorAttributes>},
    {"", "BitwiseNot", 18, kNewestOpset, bitwise_not},
    {"", "BitShift", 11, kNewestOpset, bit_shift},
    {"", "Sum", 1, kNewestOpset, variadic<op::AddAttributes>},
    {"", "Mean", 1, kNewestOpset, mean},
    {"", "Min", 1, kNewestOpset, variadic<op::MinimumAttributes>},
    {"", "Max", 1, kNewestOpset, variadic<op::MaximumAttributes>},
    {"", "Clip", 1, 10, clip_attributes},
    {"", "Clip", 11, kNewestOpset, clip_inputs},
    {"", "IsNaN", 9, kNewestOpset, is_nan},
    {"", "IsInf", 10, kNewestOpset, is_inf},
    {"", "Where", 9, kNewestOpset, where},
};

}  // namespace

std::span<const ImportRow> rows_elementwise() {
  return kElementwiseRows;
}

}  // namespace librt::onnx
