// Optimizer steps of ai.onnx.preview.training: (R, T, X.., G.., states..) -> (X'.., states'..), for any
// number of tensors X with gradients G; R is the learning rate, T counts the steps. Formulas: ONNX's
// Operators-ml.
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

// One tensor with its gradient, regularized, and its states.
struct Parameter {
  ValueId x = kNoValue, gradient = kNoValue, first = kNoValue, second = kNoValue;
};

ValueId times(Emitter& e, double factor, ValueId x) {
  return e.mul(e.scalar_like(factor, x), x);
}
ValueId square_root(Emitter& e, ValueId x) {
  return e.emit(op::SqrtAttributes{}, {x});
}
// T in the type of R.
ValueId step_number(NodeContext& c) {
  return c.emit.cast(c.input(1), c.dtype(0));
}
// `later` once steps have been done, else `first`.
ValueId after_first_step(NodeContext& c, ValueId later, ValueId first) {
  const ValueId done = c.emit.emit(op::GreaterAttributes{}, {c.input(1), c.emit.scalar_like(0, c.input(1))});
  return c.emit.emit(op::WhereAttributes{}, {done, later, first});
}

// The inputs as parameters with `states` states each.
Result<std::vector<Parameter>> parameters(NodeContext& c, size_t states) {
  const size_t groups = 2 + states;
  if (c.inputs.size() < 2 + groups || (c.inputs.size() - 2) % groups != 0)
    return invalid_model("expected R, T and ", groups, " inputs for each tensor, found ", c.inputs.size());
  RT_TRY(c.expect_inputs(c.inputs.size(), c.inputs.size()));
  const double norm = static_cast<double>(c.real("norm_coefficient", 0));
  const size_t count = (c.inputs.size() - 2) / groups;
  std::vector<Parameter> list(count);
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](size_t group) { return group < groups ? c.input(2 + group * count + i) : kNoValue; };
    list[i] = {at(0), at(1), at(2), at(3)};
    if (norm != 0) list[i].gradient = c.emit.add(times(c.emit, norm, list[i].x), list[i].gradient);
  }
  return list;
}

// X'.., then the states group by group.
Status set_outputs(NodeContext& c, std::span<const Parameter> list, size_t states) {
  for (const Parameter& parameter : list) c.outputs.push_back(parameter.x);
  for (const Parameter& parameter : list) c.outputs.push_back(parameter.first);
  for (const Parameter& parameter : list)
    if (states > 1) c.outputs.push_back(parameter.second);
  return {};
}

// r = R / (1 + decay T); H' = H + G^2; X' = X - r G / (sqrt(H') + epsilon).
Status adagrad(NodeContext& c) {
  RT_ASSIGN(auto list, parameters(c, 1));
  Emitter& e = c.emit;
  const double decay = static_cast<double>(c.real("decay_factor", 0));
  const double epsilon = static_cast<double>(c.real("epsilon", 0));
  const ValueId one = e.scalar_like(1, c.input(0));
  const ValueId rate = e.div(c.input(0), e.add(one, times(e, decay, step_number(c))));
  for (Parameter& p : list) {
    p.first = e.add(p.first, e.mul(p.gradient, p.gradient));
    const ValueId divisor = e.add(square_root(e, p.first), e.scalar_like(epsilon, p.first));
    p.x = e.sub(p.x, e.div(e.mul(rate, p.gradient), divisor));
  }
  return set_outputs(c, list, 1);
}

// V' = alpha V + (1 - alpha) G; H' = beta H + (1 - beta) G^2; r = R sqrt(1 - beta^T) / (1 - alpha^T), R
// before the first step; X' = (1 - norm_coefficient_post) (X - r V' / (sqrt(H') + epsilon)).
Status adam(NodeContext& c) {
  RT_ASSIGN(auto list, parameters(c, 2));
  Emitter& e = c.emit;
  const double alpha = static_cast<double>(c.real("alpha", 0.9f));
  const double beta = static_cast<double>(c.real("beta", 0.999f));
  const double epsilon = static_cast<double>(c.real("epsilon", 0));
  const double post = static_cast<double>(c.real("norm_coefficient_post", 0));
  const ValueId one = e.scalar_like(1, c.input(0)), steps = step_number(c);
  const auto rest_of = [&](double base) {
    return e.sub(one, e.emit(op::PowAttributes{}, {e.scalar_like(base, one), steps}));
  };
  const ValueId corrected = e.div(e.mul(c.input(0), square_root(e, rest_of(beta))), rest_of(alpha));
  const ValueId rate = after_first_step(c, corrected, c.input(0));
  for (Parameter& p : list) {
    p.first = e.add(times(e, alpha, p.first), times(e, 1 - alpha, p.gradient));
    p.second = e.add(times(e, beta, p.second), times(e, 1 - beta, e.mul(p.gradient, p.gradient)));
    const ValueId divisor = e.add(square_root(e, p.second), e.scalar_like(epsilon, p.second));
    p.x = e.sub(p.x, e.div(e.mul(rate, p.first), divisor));
    if (post != 0) p.x = times(e, 1 - post, p.x);
  }
  return set_outputs(c, list, 2);
}

// V' = alpha V + b G, b = beta but 1 before the first step; X' = X - R V', or X - R (G + alpha V') with
// nesterov.
Status momentum(NodeContext& c) {
  RT_ASSIGN(auto list, parameters(c, 1));
  Emitter& e = c.emit;
  const double alpha = static_cast<double>(c.real("alpha", 0));
  const double beta = static_cast<double>(c.real("beta", 0));
  const std::string mode = c.string("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    return invalid_model("expected the mode standard or nesterov, found '", mode, "'");
  const ValueId one = e.scalar_like(1, c.input(0));
  const ValueId factor = after_first_step(c, e.scalar_like(beta, one), one);
  for (Parameter& p : list) {
    p.first = e.add(times(e, alpha, p.first), e.mul(factor, p.gradient));
    const ValueId step = mode == "standard" ? p.first : e.add(p.gradient, times(e, alpha, p.first));
    p.x = e.sub(p.x, e.mul(c.input(0), step));
  }
  return set_outputs(c, list, 1);
}

constexpr ImportRow kOptimizerRows[] = {
    {"ai.onnx.preview.training", "Adagrad", 1, kNewestOpset, adagrad},
    {"ai.onnx.preview.training", "Adam", 1, kNewestOpset, adam},
    {"ai.onnx.preview.training", "Momentum", 1, kNewestOpset, momentum},
};

}  // namespace

std::span<const ImportRow> rows_optimizer() {
  return kOptimizerRows;
}

}  // namespace librt::onnx
