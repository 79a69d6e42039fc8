// Activation functions.
#include "tools/onnx/activations.h"

#include <limits>

#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
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
ValueId selu_of(NodeContext& c, ValueId x, float alpha, float gamma) {
  return c.emit.mul(elu_of(c, x, alpha), c.emit.scalar_like(gamma, x));
}

Status selu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  c.ignore({"consumed_inputs"});
  const float alpha = c.real("alpha", c.opset < 6 ? 1.6732f : 1.67326319217681884765625f);
  const float gamma = c.real("gamma", c.opset < 6 ? 1.0507f : 1.05070102214813232421875f);
  return c.result(selu_of(c, c.input(0), alpha, gamma));
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

ValueId gelu_of(NodeContext& c, ValueId x, bool tanh_approximation) {
  op::GeluAttributes attributes;
  attributes.tanh_approximation = tanh_approximation;
  return c.emit.emit(attributes, {x});
}

Status gelu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const std::string approximate = c.string("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return invalid_model("approximate: expected none or tanh, found ", approximate);
  return c.result(gelu_of(c, c.input(0), approximate == "tanh"));
}

// Of x + bias, if there is one.
template <bool kTanhApproximation>
Status biased_gelu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 2));
  const ValueId x = c.has(1) ? c.emit.add(c.input(0), c.input(1)) : c.input(0);
  return c.result(gelu_of(c, x, kTanhApproximation));
}

// Of x + bias: the first half of the last axis times the Gelu of the second.
Status split_gelu(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const int axis = c.rank() - 1;
  if (axis < 0) return invalid_model("a scalar has no halves");
  const int64_t width = c.extent(0, axis) >= 0 ? c.extent(0, axis) : c.extent(1, c.rank(1) - 1);
  if (width < 0 || width % 2 != 0)
    return cannot("a last axis of extent ", width, "; it must be even and known");
  const ValueId x = c.emit.add(c.input(0), c.input(1));
  const ValueId right = gelu_of(c, slice(c.emit, x, axis, width / 2, width), false);
  return c.result(c.emit.mul(slice(c.emit, x, axis, 0, width / 2), right));
}

// x + bias + skip
Status biased_sum(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  return c.result(c.emit.add(c.emit.add(c.input(0), c.input(1)), c.input(2)));
}

// x sigmoid(alpha x)
ValueId swish_of(NodeContext& c, ValueId x, float alpha) {
  if (alpha == 1) return c.emit.emit(op::SiluAttributes{}, {x});
  const ValueId gate = c.emit.emit(op::SigmoidAttributes{}, {c.emit.mul(x, c.emit.scalar_like(alpha, x))});
  return c.emit.mul(x, gate);
}

Status swish(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  return c.result(swish_of(c, c.input(0), c.real("alpha", 1)));
}

Status quick_gelu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  return c.result(swish_of(c, c.input(0), c.real("alpha", 1.702f)));
}

// x tanh(softplus(x))
Status mish(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId soft = c.emit.emit(op::SoftplusAttributes{}, {c.input(0)});
  return c.result(c.emit.mul(c.input(0), c.emit.emit(op::TanhAttributes{}, {soft})));
}

// x / (1 + |x|)
ValueId softsign_of(NodeContext& c, ValueId x) {
  const ValueId one = c.emit.scalar_like(1, x);
  return c.emit.div(x, c.emit.add(one, c.emit.emit(op::AbsAttributes{}, {x})));
}

Status softsign(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  return c.result(softsign_of(c, c.input(0)));
}

ValueId thresholded_relu_of(NodeContext& c, ValueId x, float alpha) {
  const ValueId above = c.emit.emit(op::GreaterAttributes{}, {x, c.emit.scalar_like(alpha, x)});
  return c.emit.emit(op::WhereAttributes{}, {above, x, c.emit.scalar_like(0, x)});
}

Status thresholded_relu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  return c.result(thresholded_relu_of(c, c.input(0), c.real("alpha", 1)));
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

// slope x below 0; before opset 7 a slope of shape [C] applies to axis 1
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

Status standard_swiglu(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const SwiGlu function{.alpha = c.real("alpha", 1)};
  return c.result(function.of(c.emit, c.input(0), c.input(1)));
}

// (gate, up), or both side by side on the last axis. A limit of 0 or less: none.
Status clamped_swiglu(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 2));
  c.ignore({"round_activation"});
  SwiGlu function{.alpha = c.real("activation_alpha", 1), .beta = c.real("activation_beta", 0)};
  if (const float limit = c.real("limit", 0); limit > 0) function.limit = limit;
  ValueId gate = c.input(0), linear = c.input(1);
  if (linear == kNoValue) {
    const int last = c.rank() - 1;
    const int64_t both = last < 0 ? -1 : c.extent(0, last);
    if (both < 0 || both % 2 != 0)
      return cannot("a gate and a linear half side by side on an axis of extent ", both,
                    "; expected a known even one");
    linear = slice(c.emit, gate, last, both / 2, both);
    gate = slice(c.emit, gate, last, 0, both / 2);
  }
  return c.result(function.of(c.emit, gate, linear));
}

constexpr ImportRow kActivationRows[] = {
    {"", "SwiGLU", 26, kNewestOpset, standard_swiglu},
    {"com.microsoft", "SwiGLU", 1, kNewestOpset, clamped_swiglu},
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
    {"com.microsoft", "BiasGelu", 1, kNewestOpset, biased_gelu<false>},
    {"com.microsoft", "FastGelu", 1, kNewestOpset, biased_gelu<true>},
    {"com.microsoft", "QuickGelu", 1, kNewestOpset, quick_gelu},
    {"com.microsoft", "BiasSplitGelu", 1, kNewestOpset, split_gelu},
    {"com.microsoft", "BiasAdd", 1, kNewestOpset, biased_sum},
    {"", "Swish", 24, kNewestOpset, swish},
    {"", "Mish", 18, kNewestOpset, mish},
    {"", "Softsign", 1, kNewestOpset, softsign},
    {"", "ThresholdedRelu", 1, kNewestOpset, thresholded_relu},
    {"", "Shrink", 9, kNewestOpset, shrink},
    {"", "PRelu", 1, kNewestOpset, prelu},
};

}  // namespace

std::span<const ImportRow> rows_activation() {
  return kActivationRows;
}

ValueId SwiGlu::of(Emitter& e, ValueId gate, ValueId linear) const {
  const auto clipped = [&](ValueId x, float low) {
    op::ClipAttributes attributes;
    attributes.minimum = low;
    attributes.maximum = *limit;
    return e.emit(attributes, {x});
  };
  if (limit) {
    gate = clipped(gate, std::numeric_limits<float>::lowest());
    linear = clipped(linear, -*limit);
  }
  if (beta != 0) linear = e.add(linear, e.scalar_like(beta, linear));
  if (alpha == 1) return e.mul(e.emit(op::SiluAttributes{}, {gate}), linear);
  const ValueId scaled = e.mul(gate, e.scalar_like(alpha, gate));
  return e.mul(e.mul(gate, e.emit(op::SigmoidAttributes{}, {scaled})), linear);
}

Result<ValueId> activated(NodeContext& c, ValueId x, std::string_view name,
                          const std::vector<float>& numbers) {
  const auto number = [&](size_t i, float otherwise) { return i < numbers.size() ? numbers[i] : otherwise; };
  const auto emit = [&](auto attributes) { return c.emit.emit(attributes, {x}); };
  if (name.empty()) return x;
  if (name == "Relu") return emit(op::ReluAttributes{});
  if (name == "Tanh") return emit(op::TanhAttributes{});
  if (name == "Sigmoid") return emit(op::SigmoidAttributes{});
  if (name == "Softplus") return emit(op::SoftplusAttributes{});
  if (name == "Softsign") return softsign_of(c, x);
  if (name == "HardSwish") return emit(op::HardSwishAttributes{});
  if (name == "Elu") return elu_of(c, x, number(0, 1));
  if (name == "Selu")
    return selu_of(c, x, number(0, 1.67326319217681884765625f), number(1, 1.05070102214813232421875f));
  if (name == "ThresholdedRelu") return thresholded_relu_of(c, x, number(0, 1));
  if (name == "LeakyRelu") {
    op::LeakyReluAttributes attributes;
    attributes.alpha = number(0, 0.01f);
    return emit(attributes);
  }
  if (name == "HardSigmoid") {
    op::HardSigmoidAttributes attributes;
    attributes.alpha = number(0, 0.2f);
    attributes.beta = number(1, 0.5f);
    return emit(attributes);
  }
  if (name == "Clip") {
    op::ClipAttributes attributes;
    attributes.minimum = number(0, attributes.minimum);
    attributes.maximum = number(1, attributes.maximum);
    return emit(attributes);
  }
  return cannot("the activation ", name, " is not supported; ", kWithoutFusion);
}

}  // namespace librt::onnx
