// Elementary functions of one input: y = f(x), same shape and type. NaN stays NaN; integers are exact and
// wrap.
#include <numbers>

#include "runtime/ops/unary_support.h"

namespace librt::ops {
namespace {

constexpr int64_t wrapped_negative(int64_t x) {
  return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(x));
}

Status eval_not(const NodeView&, std::span<const ConstTensorView> inputs,
                std::span<const TensorView> outputs) {
  const int64_t count = inputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i)
    store_integer(outputs[0].data, DType::Bool, i, load_integer(inputs[0].data, DType::Bool, i) == 0);
  return {};
}

constexpr DTypeSet only_bool() {
  return DTypeSet{DType::Bool};
}

/// g / (2 y), infinite at 0; where 0 is a minimum, as of a norm, a standard deviation or a distance, its
/// subgradient 0.
void gradient_of_sqrt(GradContext& c) {
  Emitter& e = c.emit;
  const ValueId y = c.output(), gradient = e.div(c.grad(), e.add(y, y));
  if (!c.is_nonnegative) return c.set(0, gradient);
  const ValueId zero = e.scalar_like(0, y);
  c.set(0, e.emit(op::WhereAttributes{}, {e.emit(op::EqualAttributes{}, {y, zero}), zero, gradient}));
}

}  // namespace

// Derivatives use the output y where they can, so that the input need not be kept.

RT_PAGE(Abs) = number_page<numbers, Function::Abs, [](int64_t x, bool is_unsigned) {
  return is_unsigned || x >= 0 ? x : wrapped_negative(x);
}>(OpKind::Abs);
RT_COMPILER_PAGE(Abs) = {.gradient = [](GradContext& c) {
  c.set(0, c.emit.mul(c.grad(), c.emit.emit(op::SignAttributes{}, {c.input(0)})));
}};

RT_PAGE(Neg) = number_page<signed_types, Function::Neg, [](int64_t x, bool) { return wrapped_negative(x); }>(
    OpKind::Neg);
RT_COMPILER_PAGE(Neg) = {.gradient = [](GradContext& c) { c.set(0, c.emit.neg(c.grad())); }};

RT_PAGE(Exp) = precision_sensitive(float_page<Function::Exp>(OpKind::Exp));
RT_COMPILER_PAGE(Exp) = {.gradient = [](GradContext& c) { c.set(0, c.emit.mul(c.grad(), c.output())); }};

RT_PAGE(Log) = precision_sensitive(float_page<Function::Log>(OpKind::Log));
RT_COMPILER_PAGE(Log) = {.gradient = [](GradContext& c) { c.set(0, c.emit.div(c.grad(), c.input(0))); },
                         .domain = {.low = 0.1, .high = 4}};

RT_PAGE(Sqrt) = float_page<Function::Sqrt>(OpKind::Sqrt);
RT_COMPILER_PAGE(Sqrt) = {.gradient = gradient_of_sqrt, .domain = {.low = 0.1, .high = 4}};

RT_PAGE(Reciprocal) = float_page<Function::Reciprocal>(OpKind::Reciprocal);
RT_COMPILER_PAGE(Reciprocal) = {
    .gradient =
        [](GradContext& c) {  // -g y^2
          c.set(0, c.emit.neg(c.emit.mul(c.grad(), c.emit.mul(c.output(), c.output()))));
        },
    .domain = {.low = 0.5, .high = 4}};

RT_PAGE(Sin) = precision_sensitive(float_page<Function::Sin>(OpKind::Sin));
RT_COMPILER_PAGE(Sin) = {.gradient = [](GradContext& c) {
  c.set(0, c.emit.mul(c.grad(), c.emit.emit(op::CosAttributes{}, {c.input(0)})));
}};

RT_PAGE(Cos) = precision_sensitive(float_page<Function::Cos>(OpKind::Cos));
RT_COMPILER_PAGE(Cos) = {.gradient = [](GradContext& c) {
  c.set(0, c.emit.neg(c.emit.mul(c.grad(), c.emit.emit(op::SinAttributes{}, {c.input(0)}))));
}};

RT_PAGE(Erf) = float_page<Function::Erf>(OpKind::Erf);
RT_COMPILER_PAGE(Erf) = {.gradient = [](GradContext& c) {  // g 2/sqrt(pi) exp(-x^2)
  Emitter& e = c.emit;
  const ValueId x = c.input(0);
  const ValueId bell = e.emit(op::ExpAttributes{}, {e.neg(e.mul(x, x))});
  c.set(0, e.mul(c.grad(), e.mul(bell, e.scalar_like(2 * std::numbers::inv_sqrtpi, x))));
}};

RT_PAGE(Atan) = float_page(OpKind::Atan);
RT_COMPILER_PAGE(Atan) = {.eval = eval_unary<Function::Atan>,
                          .gradient = [](GradContext& c) {  // g / (1 + x^2)
                            Emitter& e = c.emit;
                            const ValueId x = c.input(0);
                            c.set(0, e.div(c.grad(), e.add(e.mul(x, x), e.scalar_like(1, x))));
                          }};

// Steps: constant almost everywhere.
RT_PAGE(Floor) = float_page<Function::Floor>(OpKind::Floor);
RT_COMPILER_PAGE(Floor) = {.gradient = zero_gradient};

RT_PAGE(Ceil) = float_page<Function::Ceil>(OpKind::Ceil);
RT_COMPILER_PAGE(Ceil) = {.gradient = zero_gradient};

RT_PAGE(Round) = float_page<Function::Round>(OpKind::Round);
RT_COMPILER_PAGE(Round) = {.gradient = zero_gradient};

RT_PAGE(Sign) = number_page<numbers, Function::Sign, [](int64_t x, bool is_unsigned) {
  return static_cast<int64_t>(is_unsigned ? x != 0 : (x > 0) - (x < 0));
}>(OpKind::Sign);
RT_COMPILER_PAGE(Sign) = {.gradient = zero_gradient};

RT_PAGE(Not) = {.kind = OpKind::Not,
                .inputs = {1, 1},
                .infer = infer_unary<only_bool>,
                .eval = eval_not,
                .form = Form::Unary};
RT_NO_GRADIENT(Not, "boolean output");

}  // namespace librt::ops
