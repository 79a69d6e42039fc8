// Activation functions, and the composites Gelu and Silu. NaN stays NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "runtime/ops/unary_support.h"

namespace librt::ops {
namespace {

ValueId greater(Emitter& emit, ValueId x, double limit) {
  return emit.emit(op::GreaterAttributes{}, {x, emit.scalar_like(limit, x)});
}

ValueId where(Emitter& emit, ValueId condition, ValueId yes, ValueId no) {
  return emit.emit(op::WhereAttributes{}, {condition, yes, no});
}

template <class Integer>
void clip_integers(const ConstTensorView& x, const TensorView& y, const FunctionCall& clip) {
  const auto low = detail::to_integer<Integer>(std::ceil(static_cast<double>(clip.alpha)));
  const auto high = detail::to_integer<Integer>(std::floor(static_cast<double>(clip.beta)));
  const int64_t count = x.info.elements();
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<Integer>(load_integer(x.data, x.info.dtype, i));
    store_integer(y.data, y.info.dtype, i, static_cast<int64_t>(std::min(std::max(value, low), high)));
  }
}

Status infer_clip(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& clip = node.as<op::ClipAttributes>();
  if (std::isnan(clip.minimum) || std::isnan(clip.maximum))
    return invalid_argument("expected numbers as minimum and maximum, found NaN");
  return infer_unary<numbers>(node, outputs);
}

Status eval_clip(const NodeView& node, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const ConstTensorView& x = inputs[0];
  FunctionCall clip = function_call(node.node);
  if (x.info.dtype == DType::F64) clip = with_open_bounds(clip);
  if (x.info.dtype == DType::U64) {
    clip_integers<uint64_t>(x, outputs[0], clip);
  } else if (is_integer(x.info.dtype)) {
    clip_integers<int64_t>(x, outputs[0], clip);
  } else {
    const int64_t count = x.info.elements();
    const auto low = static_cast<double>(clip.alpha), high = static_cast<double>(clip.beta);
    for (int64_t i = 0; i < count; ++i)
      store(outputs[0], i, function_value<Function::Clip>(load(x, i), low, high));
  }
  return {};
}

/// The gradient passes where minimum <= x <= maximum, both included.
void gradient_of_clip(GradContext& c) {
  Emitter& e = c.emit;
  const auto& clip = c.node.as<op::ClipAttributes>();
  const ValueId x = c.input(0);
  const auto at_least = op::GreaterOrEqualAttributes{};
  const auto at_most = op::LessOrEqualAttributes{};
  const ValueId inside = e.emit(op::AndAttributes{},
                                {e.emit(at_least, {x, e.scalar_like(static_cast<double>(clip.minimum), x)}),
                                 e.emit(at_most, {x, e.scalar_like(static_cast<double>(clip.maximum), x)})});
  c.set(0, keep_where(e, inside, c.grad()));
}

/// x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) x (1 + 0.044715 x^2))).
std::vector<ValueId> body_of_gelu(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const ValueId x = inputs[0];
  const auto number = [&](double value) { return e.scalar_like(value, x); };
  ValueId bend;
  if (node.as<op::GeluAttributes>().tanh_approximation) {
    // x (1 + c x^2) instead of x + c x^3: the cube overflows f16 much earlier.
    const ValueId factor = e.add(e.mul(e.mul(x, x), number(0.044715)), number(1));
    const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    bend = e.emit(op::TanhAttributes{}, {e.mul(e.mul(x, number(scale)), factor)});
  } else {
    bend = e.emit(op::ErfAttributes{}, {e.mul(x, number(1 / std::numbers::sqrt2))});
  }
  return {e.mul(e.mul(x, number(0.5)), e.add(bend, number(1)))};
}

template <class Gradient>
void gradient_of_gate(GradContext& c, const Gradient& gradient) {
  c.set(0, c.emit.emit(gradient, {c.grad(), c.input(0)}));
}

std::vector<ValueId> body_of_silu(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  return {e.mul(inputs[0], e.emit(op::SigmoidAttributes{}, {inputs[0]}))};
}

}  // namespace

RT_PAGE(Tanh) = float_page(OpKind::Tanh);
RT_COMPILER_PAGE(Tanh) = {.eval = eval_unary<Function::Tanh>,
                          .gradient = [](GradContext& c) {  // g (1 - y^2)
                            Emitter& e = c.emit;
                            const ValueId y = c.output();
                            c.set(0, e.mul(c.grad(), e.sub(e.scalar_like(1, y), e.mul(y, y))));
                          }};

RT_PAGE(Sigmoid) = float_page(OpKind::Sigmoid);
RT_COMPILER_PAGE(Sigmoid) = {.eval = eval_unary<Function::Sigmoid>,
                             .gradient = [](GradContext& c) {  // g y (1 - y)
                               Emitter& e = c.emit;
                               const ValueId y = c.output();
                               c.set(0, e.mul(c.grad(), e.mul(y, e.sub(e.scalar_like(1, y), y))));
                             }};

RT_PAGE(Relu) = number_page<signed_types, Function::Relu,
                            [](int64_t x, bool) { return x < 0 ? int64_t{0} : x; }>(OpKind::Relu);
RT_COMPILER_PAGE(Relu) = {.gradient = [](GradContext& c) {
  c.set(0, c.emit.emit(op::ReluGradAttributes{}, {c.grad(), c.output()}));
}};

RT_PAGE(Softplus) = precision_sensitive(float_page(OpKind::Softplus));
RT_COMPILER_PAGE(Softplus) = {
    .eval = eval_unary<Function::Softplus>, .gradient = [](GradContext& c) {
      c.set(0, c.emit.mul(c.grad(), c.emit.emit(op::SigmoidAttributes{}, {c.input(0)})));
    }};

RT_PAGE(LeakyRelu) = float_page(OpKind::LeakyRelu);
RT_COMPILER_PAGE(LeakyRelu) = {.eval = eval_unary<Function::LeakyRelu>, .gradient = [](GradContext& c) {
                                 Emitter& e = c.emit;
                                 const double alpha =
                                     static_cast<double>(c.node.as<op::LeakyReluAttributes>().alpha);
                                 const ValueId sloped = e.mul(c.grad(), e.scalar_like(alpha, c.grad()));
                                 c.set(0, where(e, greater(e, c.input(0), 0), c.grad(), sloped));
                               }};

RT_PAGE(Elu) = float_page(OpKind::Elu);
RT_COMPILER_PAGE(Elu) = {.eval = eval_unary<Function::Elu>,
                         .gradient = [](GradContext& c) {  // below zero alpha e^x = y + alpha
                           Emitter& e = c.emit;
                           const double alpha = static_cast<double>(c.node.as<op::EluAttributes>().alpha);
                           const ValueId below =
                               e.mul(c.grad(), e.add(c.output(), e.scalar_like(alpha, c.output())));
                           c.set(0, where(e, greater(e, c.input(0), 0), c.grad(), below));
                         }};

RT_PAGE(HardSigmoid) = float_page(OpKind::HardSigmoid);
RT_COMPILER_PAGE(HardSigmoid) = {
    .eval = eval_unary<Function::HardSigmoid>, .gradient = [](GradContext& c) {
      Emitter& e = c.emit;
      const double alpha = static_cast<double>(c.node.as<op::HardSigmoidAttributes>().alpha);
      const ValueId y = c.output();
      const ValueId below_one = e.emit(op::LessAttributes{}, {y, e.scalar_like(1, y)});
      const ValueId inside = e.emit(op::AndAttributes{}, {greater(e, y, 0), below_one});
      c.set(0, keep_where(e, inside, e.mul(c.grad(), e.scalar_like(alpha, c.grad()))));
    }};

RT_PAGE(HardSwish) = float_page(OpKind::HardSwish);
RT_COMPILER_PAGE(HardSwish) = {
    .eval = eval_unary<Function::HardSwish>,
    .gradient = [](GradContext& c) {  // 0 | x/3 + 1/2 | 1
      Emitter& e = c.emit;
      const ValueId x = c.input(0);
      const ValueId slope = e.add(e.mul(x, e.scalar_like(1.0 / 3, x)), e.scalar_like(0.5, x));
      const ValueId rising = keep_where(e, greater(e, x, -3), e.mul(c.grad(), slope));
      c.set(0, where(e, greater(e, x, 3), c.grad(), rising));
    }};

RT_PAGE(Clip) = {
    .kind = OpKind::Clip, .inputs = {1, 1}, .infer = infer_clip, .eval = eval_clip, .form = Form::Unary};
RT_COMPILER_PAGE(Clip) = {.gradient = gradient_of_clip};

RT_PAGE(Gelu) = {.kind = OpKind::Gelu,
                 .inputs = {1, 1},
                 .infer = infer_unary<floats>,
                 .cost = [](const NodeView& node) { return elementwise_cost(node, 8); },
                 .composite = true,
                 .form = Form::Unary};
RT_COMPILER_PAGE(Gelu) = {.gradient =
                              [](GradContext& c) {
                                op::GeluGradAttributes gradient;
                                gradient.tanh_approximation =
                                    c.node.as<op::GeluAttributes>().tanh_approximation;
                                gradient_of_gate(c, gradient);
                              },
                          .body = body_of_gelu};

RT_PAGE(Silu) = {.kind = OpKind::Silu,
                 .inputs = {1, 1},
                 .infer = infer_unary<floats>,
                 .cost = [](const NodeView& node) { return elementwise_cost(node, 5); },
                 .composite = true,
                 .form = Form::Unary};
RT_COMPILER_PAGE(Silu) = {.gradient = [](GradContext& c) { gradient_of_gate(c, op::SiluGradAttributes{}); },
                          .body = body_of_silu};

}  // namespace librt::ops
