// Optimizer steps: new parameters and moments from a gradient. Their outputs become the state's next values.
//
// The gradient has the parameter's type; moments have that type or f32.
#include "runtime/ops/optimizer.h"
#include "runtime/ops/values.h"

#include <cmath>
#include <cstring>

namespace librt::ops {

Status expect_moment(const NodeView& node, size_t i, Label what) {
  return expect_dtype_and_shape(node, i, what, DTypeSet(node.dtype(0), DType::F32), node.shape(0));
}

Status expect_parameter_and_gradient(const NodeView& node) {
  RT_TRY(expect_dtype(node, 0, "parameter", kFloats));
  return expect_like_first(node, "gradient", "parameter");
}

Status expect_scalar(const NodeView& node, size_t i, Label what, DType dtype) {
  if (!node.has(i)) return invalid_argument("expected ", what, " as input ", i, ", found none");
  return expect_dtype_and_shape(node, i, what, DTypeSet{dtype}, Shape{});
}

Status expect_scale_and_skip(const NodeView& node, size_t gradient_scale) {
  if (node.has(gradient_scale)) RT_TRY(expect_scalar(node, gradient_scale, "gradient_scale", DType::F32));
  if (node.has(gradient_scale + 1)) RT_TRY(expect_scalar(node, gradient_scale + 1, "skip", DType::Bool));
  return {};
}

Status expect_decay_rate(Label what, float rate) {
  if (rate >= 0 && rate < 1) return {};
  return invalid_argument("expected ", what, " in [0, 1), found ", rate);
}

namespace {

bool present(std::span<const ConstTensorView> inputs, size_t i) {
  return i < inputs.size() && inputs[i].data != nullptr;
}

/// If `skip` is true, copies the old values and returns true.
bool skipped(std::span<const ConstTensorView> inputs, size_t skip, std::initializer_list<size_t> old,
             std::span<const TensorView> outputs) {
  if (!present(inputs, skip) || load_integer(inputs[skip].data, DType::Bool, 0) == 0) return false;
  size_t output = 0;
  for (size_t i : old)
    if (present(inputs, i)) {
      std::memcpy(outputs[output].data, inputs[i].data, outputs[output].info.bytes());
      ++output;
    }
  return true;
}

// --- SgdStep

Status infer_sgd(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& sgd = node.as<op::SgdStepAttributes>();
  RT_TRY(expect_parameter_and_gradient(node));
  RT_TRY(expect_scalar(node, 3, "learning_rate", DType::F32));
  if (node.has(4) || (sgd.dampening != 0 && node.has(2))) RT_TRY(expect_scalar(node, 4, "step", DType::I32));
  RT_TRY(expect_scale_and_skip(node, 5));
  RT_TRY(add_output(outputs, node.input(0)));
  if (node.has(2)) {
    RT_TRY(expect_moment(node, 2, "velocity"));
    RT_TRY(add_output(outputs, node.input(2)));
  } else if (sgd.momentum != 0 || sgd.nesterov) {
    return invalid_argument("expected a velocity as input 2 for momentum ", sgd.momentum, ", found none");
  }
  return {};
}

Status eval_sgd(const NodeView& node, std::span<const ConstTensorView> inputs,
                std::span<const TensorView> outputs) {
  const auto& sgd = node.as<op::SgdStepAttributes>();
  const double momentum = static_cast<double>(sgd.momentum);
  const double decay = static_cast<double>(sgd.weight_decay);
  const double rate = load(inputs[3], 0);
  const bool has_velocity = node.has(2);
  if (skipped(inputs, 6, {0, 2}, outputs)) return {};
  const double scale = present(inputs, 5) ? load(inputs[5], 0) : 1;
  const bool first = present(inputs, 4) && load(inputs[4], 0) == 1;
  const double share = first ? 1 : 1 - static_cast<double>(sgd.dampening);
  const int64_t count = inputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i) {
    const double parameter = load(inputs[0], i);
    const double gradient = scale * load(inputs[1], i) + decay * parameter;
    double direction = gradient;
    if (has_velocity) {
      const double velocity = momentum * load(inputs[2], i) + share * gradient;
      store(outputs[1], i, velocity);
      direction = sgd.nesterov ? gradient + momentum * velocity : velocity;
    }
    store(outputs[0], i, parameter - rate * direction);
  }
  return {};
}

// --- AdamStep

Status infer_adam(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& adam = node.as<op::AdamStepAttributes>();
  RT_TRY(expect_decay_rate("beta1", adam.beta1));
  RT_TRY(expect_decay_rate("beta2", adam.beta2));
  RT_TRY(expect_parameter_and_gradient(node));
  RT_TRY(expect_moment(node, 2, "first moment"));
  RT_TRY(expect_moment(node, 3, "second moment"));
  RT_TRY(expect_scalar(node, 4, "step", DType::I32));
  RT_TRY(expect_scalar(node, 5, "learning_rate", DType::F32));
  if (node.has(6)) RT_TRY(expect_moment(node, 6, "largest second moment"));
  RT_TRY(expect_scale_and_skip(node, 7));
  for (const auto i : std::initializer_list<size_t>{0, 2, 3, 6})
    if (node.has(i)) RT_TRY(add_output(outputs, node.input(i)));
  return {};
}

/// m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2,
/// p' = p - lr (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + epsilon); decay goes into g, or decoupled
/// into p (1 - lr decay) first.
Status eval_adam(const NodeView& node, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const auto& adam = node.as<op::AdamStepAttributes>();
  const double beta1 = static_cast<double>(adam.beta1);
  const double beta2 = static_cast<double>(adam.beta2);
  const double decay = static_cast<double>(adam.weight_decay);
  const double step = load(inputs[4], 0);
  const double rate = load(inputs[5], 0);
  if (step < 1) return invalid_argument("expected a step that counts from 1, found ", step);
  if (skipped(inputs, 8, {0, 2, 3, 6}, outputs)) return {};
  const double scale = present(inputs, 7) ? load(inputs[7], 0) : 1;
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  const int64_t count = inputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i) {
    double parameter = load(inputs[0], i);
    double gradient = scale * load(inputs[1], i);
    if (adam.decoupled)
      parameter -= rate * decay * parameter;
    else
      gradient += decay * parameter;
    const double first = beta1 * load(inputs[2], i) + (1 - beta1) * gradient;
    const double second = beta2 * load(inputs[3], i) + (1 - beta2) * gradient * gradient;
    double largest = second;
    if (present(inputs, 6)) {
      largest = std::max(load(inputs[6], i), second);
      store(outputs[3], i, largest);
    }
    const double denominator = std::sqrt(largest / correction2) + static_cast<double>(adam.epsilon);
    store(outputs[0], i, parameter - rate * (first / correction1) / denominator);
    store(outputs[1], i, first);
    store(outputs[2], i, second);
  }
  return {};
}

}  // namespace

// Domains keep v, which is a sum of squares, and the step positive.

RT_PAGE(SgdStep) = {.kind = OpKind::SgdStep,
                    .inputs = {2, 7},
                    .outputs = {1, 2},
                    .infer = infer_sgd,
                    .cost = [](const NodeView& node) { return elementwise_cost(node, 6); },
                    .arithmetic = Arithmetic::PrecisionSensitive,
                    .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(SgdStep) = {.eval = eval_sgd,
                             .no_gradient = "an update of parameters, which comes after all gradients"};

RT_PAGE(AdamStep) = {.kind = OpKind::AdamStep,
                     .inputs = {6, 9},
                     .outputs = {3, 4},
                     .infer = infer_adam,
                     .cost = [](const NodeView& node) { return elementwise_cost(node, 14); },
                     .arithmetic = Arithmetic::PrecisionSensitive,
                     .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(AdamStep) = {.eval = eval_adam,
                              .no_gradient = "an update of parameters, which comes after all gradients",
                              .domain = {.low = 0.1, .high = 2}};

}  // namespace librt::ops
