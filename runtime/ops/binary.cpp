// Arithmetic of two inputs with NumPy's broadcasting, and the gradient of Relu. Integers are exact and wrap;
// dividing them by zero is an error.
#include <cmath>
#include <limits>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

using RealFunction = double (*)(double, double);
/// On the bits of 64-bit integers; is_u64: they are unsigned.
using IntegerFunction = int64_t (*)(int64_t, int64_t, bool is_u64);

constexpr uint64_t bits(int64_t x) {
  return static_cast<uint64_t>(x);
}
constexpr int64_t wrapped(uint64_t x) {
  return static_cast<int64_t>(x);
}
constexpr bool less(int64_t a, int64_t b, bool is_u64) {
  return is_u64 ? bits(a) < bits(b) : a < b;
}

/// Toward zero; b != 0. The most negative value divided by -1 wraps to itself.
int64_t quotient(int64_t a, int64_t b, bool is_u64) {
  if (is_u64) return wrapped(bits(a) / bits(b));
  return b == -1 ? wrapped(uint64_t{0} - bits(a)) : a / b;
}

int64_t truncated_remainder(int64_t a, int64_t b, bool is_u64) {
  if (is_u64) return wrapped(bits(a) % bits(b));
  return b == -1 ? 0 : a % b;
}

int64_t floored_remainder(int64_t a, int64_t b, bool is_u64) {
  const int64_t remainder = truncated_remainder(a, b, is_u64);
  return !is_u64 && remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double truncated_remainder(double a, double b) {
  return std::fmod(a, b);
}

double floored_remainder(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

/// A negative exponent is the reciprocal truncated: 0 unless the base is 1 or -1. 0 to a negative power is
/// undefined.
int64_t power(int64_t base, int64_t exponent, bool is_u64) {
  if (!is_u64 && exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t result = 1;
  uint64_t factor = bits(base);
  for (uint64_t left = bits(exponent); left != 0; left >>= 1, factor *= factor)
    if ((left & 1) != 0) result *= factor;
  return wrapped(result);
}

double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : (b < a ? b : a);
}
double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : (a < b ? b : a);
}

Status infer_binary(const NodeView& node, std::vector<TensorInfo>& outputs) {
  return infer_pair(node, outputs, kNumericTypes, node.dtype(0));
}

enum class Divisor { Any, NotZero };

Status apply(RealFunction f, IntegerFunction g, Divisor divisors, std::span<const ConstTensorView> inputs,
             const TensorView& y) {
  const ConstTensorView& a = inputs[0];
  const ConstTensorView& b = inputs[1];
  const DType dtype = y.info.dtype;
  const std::array<Shape, 2> shapes{a.info.shape, b.info.shape};
  return for_each_broadcast(y.info.shape, shapes, [&](int64_t i, const std::array<int64_t, 2>& at) -> Status {
    if (is_float(dtype)) {
      store(y, i, f(load(a, at[0]), load(b, at[1])));
      return {};
    }
    const int64_t divisor = load_integer(b.data, dtype, at[1]);
    if (divisors == Divisor::NotZero && divisor == 0)
      return invalid_argument("expected a divisor other than 0, found 0 at element ", at[1], " of type ",
                              name_of(dtype));
    store_integer(y.data, dtype, i, g(load_integer(a.data, dtype, at[0]), divisor, dtype == DType::U64));
    return {};
  });
}

template <RealFunction F, IntegerFunction I, Divisor kDivisor = Divisor::Any>
Status eval_binary(const NodeView&, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  return apply(F, I, kDivisor, inputs, outputs[0]);
}

template <RealFunction F, IntegerFunction I, Divisor kDivisor = Divisor::Any>
constexpr Page binary_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {2, 2},
          .infer = infer_binary,
          .eval = eval_binary<F, I, kDivisor>,
          .cost = [](const NodeView& node) { return elementwise_cost(node, 1); },
          .form = Form::Broadcast};
}

Status eval_mod(const NodeView& node, std::span<const ConstTensorView> inputs,
                std::span<const TensorView> outputs) {
  if (node.as<op::ModAttributes>().truncated)
    return eval_binary<truncated_remainder, truncated_remainder, Divisor::NotZero>(node, inputs, outputs);
  return eval_binary<floored_remainder, floored_remainder, Divisor::NotZero>(node, inputs, outputs);
}

/// d/da = b a^(b-1), and 0 where b = 0, also at a = 0. d/db = y log a, and 0 at a = 0, the limit of y log a.
void gradient_of_pow(GradContext& c) {
  Emitter& e = c.emit;
  const ValueId a = c.input(0);
  const ValueId b = c.input(1);
  const auto number = [&](double value) { return e.scalar_like(value, a); };
  const auto is_zero = [&](ValueId x) { return e.emit(op::EqualAttributes{}, {x, number(0)}); };
  if (c.needs(0)) {
    const std::optional<double> exponent = constant_number(e, b);
    if (exponent == 2.0) {
      c.set(0, e.mul(c.grad(), e.add(a, a)));
    } else if (exponent && *exponent != 0) {
      const ValueId slope = e.emit(op::PowAttributes{}, {a, number(*exponent - 1)});
      c.set(0, e.mul(c.grad(), e.mul(slope, number(*exponent))));
    } else if (!exponent) {
      const ValueId slope = e.mul(b, e.emit(op::PowAttributes{}, {a, e.sub(b, number(1))}));
      const ValueId guarded = e.emit(op::WhereAttributes{}, {is_zero(b), number(0), slope});
      c.set(0, e.mul(c.grad(), guarded));
    }
  }
  if (c.needs(1)) {
    const ValueId zero_base = is_zero(a);
    const ValueId base = e.emit(op::WhereAttributes{}, {zero_base, number(1), a});
    const ValueId slope = e.mul(c.output(), e.emit(op::LogAttributes{}, {base}));
    c.set(1, e.mul(c.grad(), e.emit(op::WhereAttributes{}, {zero_base, number(0), slope})));
  }
}

/// The selected input takes the gradient; on a tie each takes half.
template <class Selects>
void gradient_of_extremum(GradContext& c) {
  Emitter& e = c.emit;
  const ValueId a = c.input(0);
  const ValueId b = c.input(1);
  const ValueId tie = e.emit(op::EqualAttributes{}, {a, b});
  const ValueId half = e.mul(c.grad(), e.scalar_like(0.5, c.grad()));
  const auto share = [&](ValueId mine, ValueId other) {
    const ValueId alone = keep_where(e, e.emit(Selects{}, {mine, other}), c.grad());
    return e.emit(op::WhereAttributes{}, {tie, half, alone});
  };
  if (c.needs(0)) c.set(0, share(a, b));
  if (c.needs(1)) c.set(1, share(b, a));
}

/// y = a - b floor(a / b); truncated: toward zero instead.
void gradient_of_mod(GradContext& c) {
  Emitter& e = c.emit;
  if (c.needs(0)) c.set(0, c.grad());
  if (!c.needs(1)) return;
  const ValueId ratio = e.div(c.input(0), c.input(1));
  ValueId whole;
  if (c.node.as<op::ModAttributes>().truncated) {
    const ValueId magnitude = e.emit(op::FloorAttributes{}, {e.emit(op::AbsAttributes{}, {ratio})});
    whole = e.mul(e.emit(op::SignAttributes{}, {ratio}), magnitude);
  } else {
    whole = e.emit(op::FloorAttributes{}, {ratio});
  }
  c.set(1, e.neg(e.mul(c.grad(), whole)));
}

/// A selection, not a product: an infinity or NaN in grad_y does not pass where y <= 0.
std::vector<ValueId> body_of_relu_grad(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  const ValueId y = inputs[1];
  return {keep_where(e, e.emit(op::GreaterAttributes{}, {y, e.scalar_like(0, y)}), inputs[0])};
}

}  // namespace

RT_PAGE(Add) =
    binary_page<[](double a, double b) { return a + b; },
                [](int64_t a, int64_t b, bool) { return wrapped(bits(a) + bits(b)); }>(OpKind::Add);
RT_COMPILER_PAGE(Add) = {.gradient = [](GradContext& c) {
  c.set(0, c.grad());
  c.set(1, c.grad());
}};

RT_PAGE(Sub) =
    binary_page<[](double a, double b) { return a - b; },
                [](int64_t a, int64_t b, bool) { return wrapped(bits(a) - bits(b)); }>(OpKind::Sub);
RT_COMPILER_PAGE(Sub) = {.gradient = [](GradContext& c) {
  c.set(0, c.grad());
  if (c.needs(1)) c.set(1, c.emit.neg(c.grad()));
}};

RT_PAGE(Mul) =
    binary_page<[](double a, double b) { return a * b; },
                [](int64_t a, int64_t b, bool) { return wrapped(bits(a) * bits(b)); }>(OpKind::Mul);
RT_COMPILER_PAGE(Mul) = {.gradient = [](GradContext& c) {
  if (c.needs(0)) c.set(0, c.emit.mul(c.grad(), c.input(1)));
  if (c.needs(1)) c.set(1, c.emit.mul(c.grad(), c.input(0)));
}};

RT_PAGE(Div) = binary_page<[](double a, double b) { return a / b; }, quotient, Divisor::NotZero>(OpKind::Div);
RT_COMPILER_PAGE(Div) = {.gradient =
                             [](GradContext& c) {  // g / b and -g y / b
                               Emitter& e = c.emit;
                               const ValueId scaled = e.div(c.grad(), c.input(1));
                               if (c.needs(0)) c.set(0, scaled);
                               if (c.needs(1)) c.set(1, e.neg(e.mul(scaled, c.output())));
                             },
                         .domain = {.low = 0.5, .high = 4}};

RT_PAGE(Pow) =
    precision_sensitive(binary_page<[](double a, double b) { return std::pow(a, b); }, power>(OpKind::Pow));
RT_COMPILER_PAGE(Pow) = {.gradient = gradient_of_pow, .domain = {.low = 0.5, .high = 2}};

RT_PAGE(Minimum) = binary_page<minimum, [](int64_t a, int64_t b, bool is_u64) {
  return less(b, a, is_u64) ? b : a;
}>(OpKind::Minimum);
RT_COMPILER_PAGE(Minimum) = {.gradient = gradient_of_extremum<op::LessAttributes>};

RT_PAGE(Maximum) = binary_page<maximum, [](int64_t a, int64_t b, bool is_u64) {
  return less(a, b, is_u64) ? b : a;
}>(OpKind::Maximum);
RT_COMPILER_PAGE(Maximum) = {.gradient = gradient_of_extremum<op::GreaterAttributes>};

RT_PAGE(Mod) = {.kind = OpKind::Mod,
                .inputs = {2, 2},
                .infer = infer_binary,
                .eval = eval_mod,
                .cost = [](const NodeView& node) { return elementwise_cost(node, 3); },
                .arithmetic = Arithmetic::PrecisionSensitive,
                .form = Form::Broadcast};
RT_COMPILER_PAGE(Mod) = {.gradient = gradient_of_mod,
                         .domain = {.low = 1, .high = 1.9}};  // the quotient stays 0 or 1

RT_PAGE(ReluGrad) = {.kind = OpKind::ReluGrad,
                     .inputs = {2, 2},
                     .infer = infer_binary,
                     .composite = true,
                     .form = Form::Broadcast};
RT_COMPILER_PAGE(ReluGrad) = {.body = body_of_relu_grad};

}  // namespace librt::ops
