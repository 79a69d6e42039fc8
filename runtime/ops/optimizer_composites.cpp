// Optimizer steps that are composites: their bodies are written out in f32 (f64 for parameters of f64), so
// that they run wherever elementwise operators and sums do. Formulas and papers are in schema/ops.fbs.
#include <cmath>

#include "runtime/ops/optimizer.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

/// Common parts of the bodies: operands in the compute type, and results by the step's conventions.
class StepWriter {
 public:
  StepWriter(Emitter& emit, std::span<const ValueId> inputs, size_t gradient_scale)
      : emit_(emit),
        inputs_(inputs),
        skip_(at(gradient_scale + 1)),
        type_(emit.value(inputs[0]).dtype == DType::F64 ? DType::F64 : DType::F32) {
    gradient_ = in(1);
    if (at(gradient_scale) != kNoValue) gradient_ = emit.mul(gradient_, in(gradient_scale));
  }

  bool has(size_t i) const { return at(i) != kNoValue; }
  ValueId in(size_t i) {
    return emit_.value(inputs_[i]).dtype == type_ ? inputs_[i] : emit_.cast(inputs_[i], type_);
  }
  ValueId gradient() const { return gradient_; }
  /// The gradient with weight decay added.
  ValueId decayed_gradient(float decay) {
    return decay == 0 ? gradient_ : emit_.add(gradient_, scaled(in(0), static_cast<double>(decay)));
  }
  ValueId number(double value) { return emit_.scalar(value, type_); }
  ValueId scaled(ValueId x, double factor) { return emit_.mul(x, number(factor)); }
  ValueId root(ValueId x) { return emit_.emit(op::SqrtAttributes{}, {x}); }
  ValueId square(ValueId x) { return emit_.mul(x, x); }
  /// rate * old + (1 - rate) * x
  ValueId running_mean(ValueId old, ValueId x, float rate) {
    const auto keep = static_cast<double>(rate);
    return emit_.add(scaled(old, keep), scaled(x, 1 - keep));
  }
  /// 1 - beta^step = -expm1(y) with y = step ln(beta), and expm1(y) = tanh(y / 2) (exp(y) + 1), which is
  /// accurate for beta close to 1.
  ValueId bias_correction(float beta, size_t step) {
    if (beta == 0) return number(1);
    const ValueId y = scaled(in(step), std::log(static_cast<double>(beta)));
    const ValueId half = emit_.emit(op::TanhAttributes{}, {scaled(y, -0.5)});
    return emit_.mul(half, emit_.add(emit_.emit(op::ExpAttributes{}, {y}), number(1)));
  }
  /// The square root of the sum of squares, a scalar.
  ValueId norm(ValueId x) { return root(emit_.reduce_sum(square(x), {}, false)); }

  /// parameter - learning_rate * direction, as the first result.
  void update(size_t learning_rate, ValueId direction) {
    result(emit_.sub(in(0), emit_.mul(in(learning_rate), direction)), 0);
  }
  /// The next value of the state that is operand `old`.
  void result(ValueId value, size_t old) {
    const DType dtype = emit_.value(inputs_[old]).dtype;
    if (dtype != type_) value = emit_.cast(value, dtype);
    if (skip_ != kNoValue) value = emit_.emit(op::WhereAttributes{}, {skip_, inputs_[old], value});
    results_.push_back(value);
  }
  std::vector<ValueId> results() { return std::move(results_); }

 private:
  ValueId at(size_t i) const { return i < inputs_.size() ? inputs_[i] : kNoValue; }

  Emitter& emit_;
  std::span<const ValueId> inputs_;
  ValueId skip_;
  DType type_;
  ValueId gradient_ = kNoValue;
  std::vector<ValueId> results_;
};

Status add_states(const NodeView& node, std::initializer_list<size_t> states,
                  std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_parameter_and_gradient(node));
  RT_TRY(add_output(outputs, node.input(0)));
  for (size_t i : states)
    if (node.has(i)) {
      RT_TRY(expect_moment(node, i, "state"));
      RT_TRY(add_output(outputs, node.input(i)));
    }
  return {};
}

// --- RmsPropStep: (p, grad, v, lr, [a], [b], [gradient_scale], [skip])

Status infer_rms_prop(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& step = node.as<op::RmsPropStepAttributes>();
  RT_TRY(expect_decay_rate("alpha", step.alpha));
  RT_TRY(add_states(node, {2, 4, 5}, outputs));
  RT_TRY(expect_scalar(node, 3, "learning_rate", DType::F32));
  if (step.momentum != 0 && !node.has(5))
    return invalid_argument("expected a velocity as input 5 for momentum ", step.momentum, ", found none");
  return expect_scale_and_skip(node, 6);
}

std::vector<ValueId> body_of_rms_prop(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& step = node.as<op::RmsPropStepAttributes>();
  StepWriter w(e, inputs, 6);
  const ValueId g = w.decayed_gradient(step.weight_decay);
  const ValueId squares = w.running_mean(w.in(2), w.square(g), step.alpha);
  ValueId mean = kNoValue, variance = squares;
  if (w.has(4)) {
    mean = w.running_mean(w.in(4), g, step.alpha);
    // Rounding may make a variance of 0 negative.
    variance = e.emit(op::MaximumAttributes{}, {e.sub(squares, w.square(mean)), w.number(0)});
  }
  ValueId direction = e.div(g, e.add(w.root(variance), w.number(static_cast<double>(step.epsilon))));
  if (w.has(5)) direction = e.add(w.scaled(w.in(5), static_cast<double>(step.momentum)), direction);
  w.update(3, direction);
  w.result(squares, 2);
  if (w.has(4)) w.result(mean, 4);
  if (w.has(5)) w.result(direction, 5);
  return w.results();
}

// --- AdagradStep: (p, grad, s, lr, [gradient_scale], [skip])

Status infer_adagrad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(add_states(node, {2}, outputs));
  RT_TRY(expect_scalar(node, 3, "learning_rate", DType::F32));
  return expect_scale_and_skip(node, 4);
}

std::vector<ValueId> body_of_adagrad(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& step = node.as<op::AdagradStepAttributes>();
  StepWriter w(e, inputs, 4);
  const ValueId g = w.decayed_gradient(step.weight_decay);
  const ValueId sum = e.add(w.in(2), w.square(g));
  w.update(3, e.div(g, e.add(w.root(sum), w.number(static_cast<double>(step.epsilon)))));
  w.result(sum, 2);
  return w.results();
}

// --- AdadeltaStep: (p, grad, v, u, lr, [gradient_scale], [skip])

Status infer_adadelta(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_decay_rate("rho", node.as<op::AdadeltaStepAttributes>().rho));
  RT_TRY(add_states(node, {2, 3}, outputs));
  RT_TRY(expect_scalar(node, 4, "learning_rate", DType::F32));
  return expect_scale_and_skip(node, 5);
}

std::vector<ValueId> body_of_adadelta(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& step = node.as<op::AdadeltaStepAttributes>();
  StepWriter w(e, inputs, 5);
  const ValueId g = w.decayed_gradient(step.weight_decay);
  const ValueId epsilon = w.number(static_cast<double>(step.epsilon));
  const ValueId squares = w.running_mean(w.in(2), w.square(g), step.rho);
  const ValueId delta = e.mul(e.div(w.root(e.add(w.in(3), epsilon)), w.root(e.add(squares, epsilon))), g);
  w.update(4, delta);
  w.result(squares, 2);
  w.result(w.running_mean(w.in(3), w.square(delta), step.rho), 3);
  return w.results();
}

// --- LambStep: (p, grad, m, v, step, lr, [gradient_scale], [skip])

Status infer_lamb(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& step = node.as<op::LambStepAttributes>();
  RT_TRY(expect_decay_rate("beta1", step.beta1));
  RT_TRY(expect_decay_rate("beta2", step.beta2));
  RT_TRY(add_states(node, {2, 3}, outputs));
  RT_TRY(expect_scalar(node, 4, "step", DType::I32));
  RT_TRY(expect_scalar(node, 5, "learning_rate", DType::F32));
  return expect_scale_and_skip(node, 6);
}

std::vector<ValueId> body_of_lamb(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& step = node.as<op::LambStepAttributes>();
  StepWriter w(e, inputs, 6);
  const ValueId first = w.running_mean(w.in(2), w.gradient(), step.beta1);
  const ValueId second = w.running_mean(w.in(3), w.square(w.gradient()), step.beta2);
  const ValueId root = w.root(e.div(second, w.bias_correction(step.beta2, 4)));
  ValueId direction = e.div(e.div(first, w.bias_correction(step.beta1, 4)),
                            e.add(root, w.number(static_cast<double>(step.epsilon))));
  if (step.weight_decay != 0)
    direction = e.add(direction, w.scaled(w.in(0), static_cast<double>(step.weight_decay)));
  const ValueId length = w.norm(w.in(0)), step_length = w.norm(direction);
  const ValueId both = e.emit(op::GreaterAttributes{}, {e.mul(length, step_length), w.number(0)});
  const ValueId ratio = e.emit(op::WhereAttributes{}, {both, e.div(length, step_length), w.number(1)});
  w.update(5, e.mul(ratio, direction));
  w.result(first, 2);
  w.result(second, 3);
  return w.results();
}

// --- LionStep: (p, grad, m, lr, [gradient_scale], [skip])

Status infer_lion(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& step = node.as<op::LionStepAttributes>();
  RT_TRY(expect_decay_rate("beta1", step.beta1));
  RT_TRY(expect_decay_rate("beta2", step.beta2));
  RT_TRY(add_states(node, {2}, outputs));
  RT_TRY(expect_scalar(node, 3, "learning_rate", DType::F32));
  return expect_scale_and_skip(node, 4);
}

std::vector<ValueId> body_of_lion(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& step = node.as<op::LionStepAttributes>();
  StepWriter w(e, inputs, 4);
  ValueId direction = e.emit(op::SignAttributes{}, {w.running_mean(w.in(2), w.gradient(), step.beta1)});
  if (step.weight_decay != 0)
    direction = e.add(direction, w.scaled(w.in(0), static_cast<double>(step.weight_decay)));
  w.update(3, direction);
  w.result(w.running_mean(w.in(2), w.gradient(), step.beta2), 2);
  return w.results();
}

constexpr const char* kNoGradient = "an update of parameters, which comes after all gradients";

}  // namespace

// Domains keep states that are sums of squares positive.

RT_PAGE(RmsPropStep) = {.kind = OpKind::RmsPropStep,
                        .inputs = {4, 8},
                        .outputs = {2, 4},
                        .infer = infer_rms_prop,
                        .cost = [](const NodeView& node) { return elementwise_cost(node, 12); },
                        .composite = true,
                        .arithmetic = Arithmetic::PrecisionSensitive,
                        .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(RmsPropStep) = {
    .no_gradient = kNoGradient, .body = body_of_rms_prop, .domain = {.low = 0.1, .high = 2}};

RT_PAGE(AdagradStep) = {.kind = OpKind::AdagradStep,
                        .inputs = {4, 6},
                        .outputs = {2, 2},
                        .infer = infer_adagrad,
                        .cost = [](const NodeView& node) { return elementwise_cost(node, 8); },
                        .composite = true,
                        .arithmetic = Arithmetic::PrecisionSensitive,
                        .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(AdagradStep) = {
    .no_gradient = kNoGradient, .body = body_of_adagrad, .domain = {.low = 0.1, .high = 2}};

RT_PAGE(AdadeltaStep) = {.kind = OpKind::AdadeltaStep,
                         .inputs = {5, 7},
                         .outputs = {3, 3},
                         .infer = infer_adadelta,
                         .cost = [](const NodeView& node) { return elementwise_cost(node, 16); },
                         .composite = true,
                         .arithmetic = Arithmetic::PrecisionSensitive,
                         .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(AdadeltaStep) = {
    .no_gradient = kNoGradient, .body = body_of_adadelta, .domain = {.low = 0.1, .high = 2}};

RT_PAGE(LambStep) = {.kind = OpKind::LambStep,
                     .inputs = {6, 8},
                     .outputs = {3, 3},
                     .infer = infer_lamb,
                     .cost = [](const NodeView& node) { return elementwise_cost(node, 20); },
                     .composite = true,
                     .arithmetic = Arithmetic::PrecisionSensitive,
                     .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(LambStep) = {
    .no_gradient = kNoGradient, .body = body_of_lamb, .domain = {.low = 0.1, .high = 2}};

RT_PAGE(LionStep) = {.kind = OpKind::LionStep,
                     .inputs = {4, 6},
                     .outputs = {2, 2},
                     .infer = infer_lion,
                     .cost = [](const NodeView& node) { return elementwise_cost(node, 9); },
                     .composite = true,
                     .arithmetic = Arithmetic::PrecisionSensitive,
                     .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(LionStep) = {.no_gradient = kNoGradient, .body = body_of_lion};

}  // namespace librt::ops
