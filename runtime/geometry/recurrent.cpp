#include "runtime/geometry/recurrent.h"

#include <span>

#include "runtime/geometry/function.h"

namespace librt {
namespace {

/// A function with its default alpha and beta: those of ONNX's operators of the same names.
FunctionCall with_defaults(Function function) {
  switch (function) {
    case Function::Affine: return {function, 1, 0};
    case Function::LeakyRelu: return {function, 0.01f, 0};
    case Function::ThresholdedRelu: return {function, 1, 0};
    case Function::ScaledTanh: return {function, 1, 1};
    case Function::HardSigmoid: return {function, 0.2f, 0.5f};
    case Function::Elu: return {function, 1, 0};
    default: return {function, 0, 0};
  }
}

/// The attributes common to all six operators.
struct Common {
  int64_t hidden;
  op::Direction direction;
  float clip;
  std::span<const op::RecurrentActivation> activations;
  std::span<const float> alphas, betas;
};

Status read_common(const Common& given, RecurrentGeometry& g) {
  g.hidden = given.hidden;
  g.directions = given.direction == op::Direction::Bidirectional ? 2 : 1;
  g.starts_reversed = given.direction == op::Direction::Reverse;
  g.clip = given.clip;
  const size_t slots = g.kind == CellKind::LSTM ? 3 : g.kind == CellKind::GRU ? 2 : 1;
  const size_t count = slots * static_cast<size_t>(g.directions);
  const auto fits = [&](size_t size) { return size == 0 || size == count; };
  if (!fits(given.activations.size()) || !fits(given.alphas.size()) || !fits(given.betas.size()))
    return invalid_argument("expected no or ", count, " activations, alphas and betas, found ",
                            given.activations.size(), ", ", given.alphas.size(), " and ", given.betas.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t slot = i % slots;
    Function function = given.activations.empty() ? Function::Identity : function_of(given.activations[i]);
    if (function == Function::Identity)
      function = slot == 0 && g.kind != CellKind::RNN ? Function::Sigmoid : Function::Tanh;
    FunctionCall& activation = g.activations[i / slots * 3 + slot];
    activation = with_defaults(function);
    if (!given.alphas.empty()) activation.alpha = given.alphas[i];
    if (!given.betas.empty()) activation.beta = given.betas[i];
  }
  return {};
}

template <class Attributes>
Status read_common(const Attributes& a, RecurrentGeometry& g) {
  return read_common(Common{a.hidden, a.direction, a.clip, a.activations, a.alphas, a.betas}, g);
}

constexpr RecurrentOperands kGradientOperands{.bias = 4,
                                              .lengths = 5,
                                              .h0 = 6,
                                              .c0 = 9,
                                              .peepholes = 10,
                                              .y = 3,
                                              .grad_y = 7,
                                              .grad_h = 8,
                                              .grad_c = 11};

Status read_attributes(const NodeView& node, RecurrentGeometry& g) {
  const auto lstm = [&](const auto& attributes) {
    g.input_forget = attributes.input_forget;
    return read_common(attributes, g);
  };
  const auto gru = [&](const auto& attributes) {
    g.kind = CellKind::GRU;
    g.gates = 3;
    g.linear_before_reset = attributes.linear_before_reset;
    return read_common(attributes, g);
  };
  const auto rnn = [&](const auto& attributes) {
    g.kind = CellKind::RNN;
    g.gates = 1;
    return read_common(attributes, g);
  };
  switch (node.kind()) {
    case OpKind::LSTM: return lstm(node.as<op::LSTMAttributes>());
    case OpKind::GRU: return gru(node.as<op::GRUAttributes>());
    case OpKind::RNN: return rnn(node.as<op::RNNAttributes>());
    default: break;
  }
  g.gradient = true;
  g.operands = kGradientOperands;
  switch (node.kind()) {
    case OpKind::LSTMGrad: return lstm(node.as<op::LSTMGradAttributes>());
    case OpKind::GRUGrad: return gru(node.as<op::GRUGradAttributes>());
    case OpKind::RNNGrad: return rnn(node.as<op::RNNGradAttributes>());
    default: return internal_error("not a recurrent operator");
  }
}

}  // namespace

bool RecurrentGeometry::plain() const noexcept {
  for (size_t i = 0; i < static_cast<size_t>(directions) * 3; ++i) {
    const int slot = static_cast<int>(i % 3);
    const int slots = kind == CellKind::LSTM ? 3 : kind == CellKind::GRU ? 2 : 1;
    const Function usual = slot == 0 && kind != CellKind::RNN ? Function::Sigmoid : Function::Tanh;
    if (slot < slots && activations[i].function != usual) return false;
  }
  return clip == 0 && !input_forget;
}

Result<RecurrentGeometry> recurrent_geometry(const NodeView& node) {
  RecurrentGeometry g;
  g.activations.fill({Function::Tanh});
  RT_TRY(read_attributes(node, g));
  const Shape &x = node.shape(0), &w = node.shape(1), &r = node.shape(2);
  if (x.rank() != 3) return invalid_argument("expected x [T,N,I], found ", x);
  g.steps = x[0];
  g.batch = x[1];
  g.input = x[2];
  if (g.hidden <= 0 || g.hidden > INT32_MAX)
    return invalid_argument("expected a hidden size above 0 and below 2^31, found ", g.hidden);
  const Shape wanted_w{g.directions, g.gates * g.hidden, g.input},
      wanted_r{g.directions, g.gates * g.hidden, g.hidden};
  g.peepholes = g.kind == CellKind::LSTM && node.has(static_cast<size_t>(g.operands.peepholes));
  if (w != wanted_w) return invalid_argument("expected w ", wanted_w, ", found ", w);
  if (r != wanted_r) return invalid_argument("expected r ", wanted_r, ", found ", r);
  return g;
}

}  // namespace librt
