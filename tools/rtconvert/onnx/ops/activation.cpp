// Activation functions.
#include "tools/rtconvert/onnx/node.h"
#include "tools/rtconvert/onnx/shapes.h"

namespace rt::onnx {
namespace {

template <class Attributes>
Status plain(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  return c.result(c.emit.emit(Attributes{}, {c.input(0)}));
}

Status leaky_relu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  op::LeakyReluAttributes attributes;
  attributes.alpha = c.real("alpha", 0.01f);
  return c.result(c.emit.emit(attributes, {c.input(0)}));
}

ValueId elu_of(NodeContext& c, ValueId x, float alpha) {
  op::EluAttributes attributes;
  attributes.alpha = alpha;
  return c.emit.emit(attributes, {x});
}

Status elu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  return c.result(elu_of(c, c.input(0), c.real("alpha", 1)));
}

// gamma elu(x, alpha)
Status selu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  const float alpha = c.real("alpha", c.opset < 6 ? 1.6732f : 1.67326319217681884765625f);
  const float gamma = c.real("gamma", c.opset < 6 ? 1.0507f : 1.05070102214813232421875f);
  return c.result(c.emit.mul(elu_of(c, c.input(0), alpha), c.emit.scalar_like(gamma, c.input(0))));
}

// alpha elu(x / alpha)
Status celu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const float alpha = c.real("alpha", 1);
  if (alpha == 1) return c.result(elu_of(c, c.input(0), 1));
  const ValueId scale = c.emit.scalar_like(alpha, c.input(0));
  return c.result(c.emit.mul(elu_of(c, c.emit.div(c.input(0), scale), 1), scale));
}

Status hard_sigmoid(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  op::HardSigmoidAttributes attributes;
  attributes.alpha = c.real("alpha", 0.2f);
  attributes.beta = c.real("beta", 0.5f);
  return c.result(c.emit.emit(attributes, {c.input(0)}));
}

Status gelu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  op::GeluAttributes attributes;
  const std::string approximate = c.string("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return invalid_model("approximate: expected none or tanh, found ", approximate);
  attributes.tanh_approximation = approximate == "tanh";
  return c.result(c.emit.emit(attributes, {c.input(0)}));
}

// x sigmoid(alpha x)
Status swish(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const float alpha = c.real("alpha", 1);
  const ValueId x = c.input(0);
  if (alpha == 1) return c.result(c.emit.emit(op::SiluAttributes{}, {x}));
  const ValueId gate = c.emit.emit(op::SigmoidAttributes{}, {c.emit.mul(x, c.emit.scalar_like(alpha, x))});
  return c.result(c.emit.mul(x, gate));
}

// x tanh(softplus(x))
Status mish(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId soft = c.emit.emit(op::SoftplusAttributes{}, {c.input(0)});
  return c.result(c.emit.mul(c.input(0), c.emit.emit(op::TanhAttributes{}, {soft})));
}

// x / (1 + |x|)
Status softsign(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId x = c.input(0);
  const ValueId one = c.emit.scalar_like(1, x);
  return c.result(c.emit.div(x, c.emit.add(one, c.emit.emit(op::AbsAttributes{}, {x}))));
}

Status thresholded_relu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId x = c.input(0);
  const ValueId above = c.emit.emit(op::GreaterAttributes{}, {x, c.emit.scalar_like(c.real("alpha", 1), x)});
  return c.result(c.emit.emit(op::WhereAttributes{}, {above, x, c.emit.scalar_like(0, x)}));
}

// x + bias below -lambd, x - bias above lambd, 0 between
Status shrink(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId x = c.input(0);
  const float lambda = c.real("lambd", 0.5f);
  const ValueId bias = c.emit.scalar_like(c.real("bias", 0), x);
  const ValueId below = c.emit.emit(op::LessAttributes{}, {x, c.emit.scalar_like(-lambda, x)});
  const ValueId above = c.emit.emit(op::GreaterAttributes{}, {x, c.emit.scalar_like(lambda, x)});
  const ValueId right =
      c.emit.emit(op::WhereAttributes{}, {above, c.emit.sub(x, bias), c.emit.scalar_like(0, x)});
  return c.result(c.emit.emit(op::WhereAttributes{}, {below, c.emit.add(x, bias), right}));
}

// slope x below 0; before opset 7 a slope of shape [C] lies at axis 1
Status prelu(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  c.ignore({"consumed_inputs"});
  const ValueId x = c.input(0);
  ValueId slope = c.input(1);
  if (c.opset < 7 && c.rank(1) == 1 && c.rank(0) > 2) {
    std::vector<int> axes;
    for (int axis = 2; axis < c.rank(0); ++axis) axes.push_back(axis - 1);
    slope = unsqueeze(c.emit, slope, axes);
  }
  const ValueId below = c.emit.emit(op::LessAttributes{}, {x, c.emit.scalar_like(0, x)});
  return c.result(c.emit.emit(op::WhereAttributes{}, {below, c.emit.mul(x, slope), x}));
}

constexpr ImportRow kActivationRows[] = {
    {"", "Relu", 1, kNewestOpset, plain<op::ReluAttributes>},
    {"", "Tanh", 1, kNewestOpset, plain<op::TanhAttributes>},
    {"", "Sigmoid", 1, kNewestOpset, plain<op::SigmoidAttributes>},
    {"", "Softplus", 1, kNewestOpset, plain<op::SoftplusAttributes>},
    {"", "HardSwish", 14, kNewestOpset, plain<op::HardSwishAttributes>},
    {"", "LeakyRelu", 1, kNewestOpset, leaky_relu},
    {"", "Elu", 1, kNewestOpset, elu},
    {"", "Selu", 1, kNewestOpset, selu},
    {"", "Celu", 12, kNewestOpset, celu},
    {"", "HardSigmoid", 1, kNewestOpset, hard_sigmoid},
    {"", "Gelu", 20, kNewestOpset, gelu},
    {"com.microsoft", "Gelu", 1, kNewestOpset, gelu},
    {"", "Swish", 24, kNewestOpset, swish},
    {"", "Mish", 18, kNewestOpset, mish},
    {"", "Softsign", 1, kNewestOpset, softsign},
    {"", "ThresholdedRelu", 10, kNewestOpset, thresholded_relu},
    {"", "Shrink", 9, kNewestOpset, shrink},
    {"", "PRelu", 1, kNewestOpset, prelu},
};

}  // namespace

std::span<const ImportRow> rows_activation() {
  return kActivationRows;
}

}  // namespace rt::onnx
