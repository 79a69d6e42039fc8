// Optimizer steps: new parameters and moments from a gradient. Their outputs become the state's next values.
//
// The gradient has the parameter's type; moments have that type or f32.
#include <cmath>

#include "runtime/ops/page_support.h"

namespace rt::ops {
namespace {

/// Input i has the parameter's shape, and its type or f32.
Status expect_moment(const NodeView& node, size_t i, std::string_view what) {
  RT_TRY(expect_dtype(node, i, what, DTypeSet(node.dtype(0), DType::F32)));
  return expect_shape(node, i, what, node.shape(0));
}

Status expect_parameter_and_gradient(const NodeView& node) {
  RT_TRY(expect_dtype(node, 0, "parameter", kFloats));
  RT_TRY(expect_same_dtype(node, 1, "gradient", 0, "parameter"));
  return expect_shape(node, 1, "gradient", node.shape(0));
}

Status expect_scalar(const NodeView& node, size_t i, std::string_view what, DType dtype) {
  if (!node.has(i)) return invalid_argument("expected ", what, " as input ", i, ", found none");
  RT_TRY(expect_dtype(node, i, what, DTypeSet{dtype}));
  return expect_shape(node, i, what, Shape{});
}

// --- SgdStep

Status infer_sgd(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& sgd = node.as<op::SgdStepAttributes>();
  RT_TRY(expect_parameter_and_gradient(node));
  RT_TRY(expect_scalar(node, 3, "learning_rate", DType::F32));
  outputs.push_back(node.input(0));
  if (node.has(2)) {
    RT_TRY(expect_moment(node, 2, "velocity"));
    outputs.push_back(node.input(2));
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
  const int64_t count = inputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i) {
    const double parameter = load(inputs[0], i);
    const double gradient = load(inputs[1], i) + decay * parameter;
    double direction = gradient;
    if (has_velocity) {
      const double velocity = momentum * load(inputs[2], i) + gradient;
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
  const auto is_decay_rate = [](float beta) { return beta >= 0 && beta < 1; };
  if (!is_decay_rate(adam.beta1) || !is_decay_rate(adam.beta2))
    return invalid_argument("expected beta1 and beta2 in [0, 1), found ", adam.beta1, " and ", adam.beta2);
  RT_TRY(expect_parameter_and_gradient(node));
  RT_TRY(expect_moment(node, 2, "first moment"));
  RT_TRY(expect_moment(node, 3, "second moment"));
  RT_TRY(expect_scalar(node, 4, "step", DType::I32));
  RT_TRY(expect_scalar(node, 5, "learning_rate", DType::F32));
  outputs.push_back(node.input(0));
  outputs.push_back(node.input(2));
  outputs.push_back(node.input(3));
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
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  const int64_t count = inputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i) {
    double parameter = load(inputs[0], i);
    double gradient = load(inputs[1], i);
    if (adam.decoupled)
      parameter -= rate * decay * parameter;
    else
      gradient += decay * parameter;
    const double first = beta1 * load(inputs[2], i) + (1 - beta1) * gradient;
    const double second = beta2 * load(inputs[3], i) + (1 - beta2) * gradient * gradient;
    const double denominator = std::sqrt(second / correction2) + static_cast<double>(adam.epsilon);
    store(outputs[0], i, parameter - rate * (first / correction1) / denominator);
    store(outputs[1], i, first);
    store(outputs[2], i, second);
  }
  return {};
}

}  // namespace

// Domains keep v, which is a sum of squares, and the step positive.

RT_PAGE(SgdStep) = {.kind = OpKind::SgdStep,
                    .inputs = {2, 4},
                    .outputs = {1, 2},
                    .infer = infer_sgd,
                    .cost = [](const NodeView& node) { return elementwise_cost(node, 6); }};
RT_COMPILER_PAGE(SgdStep) = {.eval = eval_sgd,
                             .no_gradient = "an update of parameters, which comes after all gradients"};

RT_PAGE(AdamStep) = {.kind = OpKind::AdamStep,
                     .inputs = {6, 6},
                     .outputs = {3, 3},
                     .infer = infer_adam,
                     .cost = [](const NodeView& node) { return elementwise_cost(node, 14); },
                     .domain = {.low = 0.1, .high = 2}};
RT_COMPILER_PAGE(AdamStep) = {.eval = eval_adam,
                              .no_gradient = "an update of parameters, which comes after all gradients"};

}  // namespace rt::ops
