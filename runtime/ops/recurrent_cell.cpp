#include "runtime/ops/recurrent_cell.h"

#include <algorithm>
#include <cmath>

#include "runtime/geometry/function_value.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

double slope_of(const FunctionCall& f, double x) {
  const auto alpha = static_cast<double>(f.alpha), beta = static_cast<double>(f.beta);
  const double y = function_value(f, x);
  switch (f.function) {
    case Function::Relu: return x > 0 ? 1 : 0;
    case Function::Sigmoid: return y * (1 - y);
    case Function::Affine: return alpha;
    case Function::LeakyRelu: return x < 0 ? alpha : 1;
    case Function::ThresholdedRelu: return x > alpha ? 1 : 0;
    case Function::ScaledTanh: {
      const double t = std::tanh(beta * x);
      return alpha * beta * (1 - t * t);
    }
    case Function::HardSigmoid: return y > 0 && y < 1 ? alpha : 0;
    case Function::Elu: return x < 0 ? y + alpha : 1;
    case Function::Softsign: return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
    case Function::Softplus: return 1 / (1 + std::exp(-x));
    default: return 1 - y * y;
  }
}

Row part(const ConstTensorView& view, int64_t direction, int64_t directions) {
  const Row all = load_all<double>(view);
  const auto size = static_cast<ptrdiff_t>(all.size()) / directions;
  return Row(all.data() + direction * size, all.data() + (direction + 1) * size);
}

}  // namespace

Row row_or_zeros(std::span<const ConstTensorView> inputs, int index, int64_t count) {
  const auto i = static_cast<size_t>(index);
  if (index < 0 || i >= inputs.size() || inputs[i].data == nullptr) return Row(static_cast<size_t>(count));
  return load_all<double>(inputs[i]);
}

std::vector<int64_t> lengths_of(const RecurrentGeometry& geometry, std::span<const ConstTensorView> inputs) {
  std::vector<int64_t> lengths(static_cast<size_t>(geometry.batch), geometry.steps);
  const auto i = static_cast<size_t>(geometry.operands.lengths);
  if (i < inputs.size() && inputs[i].data != nullptr)
    for (size_t n = 0; n < lengths.size(); ++n)
      lengths[n] = std::clamp<int64_t>(inputs[i].as<int32_t>()[n], 0, geometry.steps);
  return lengths;
}

Cell::Cell(const RecurrentGeometry& geometry, int64_t direction, std::span<const ConstTensorView> inputs)
    : geometry_(geometry), direction_(direction) {
  const auto of = [&](int index, int64_t count) {
    const auto i = static_cast<size_t>(index);
    if (i >= inputs.size() || inputs[i].data == nullptr) return Row(static_cast<size_t>(count));
    return part(inputs[i], direction, geometry.directions);
  };
  w_ = of(1, 0);
  r_ = of(2, 0);
  bias_ = of(geometry.operands.bias, 2 * geometry.gates * geometry.hidden);
  if (geometry.kind == CellKind::LSTM) peepholes_ = of(geometry.operands.peepholes, 3 * geometry.hidden);
}

double Cell::apply(int slot, double x) const {
  const auto clip = static_cast<double>(geometry_.clip);
  if (clip > 0 && !std::isnan(x)) x = std::clamp(x, -clip, clip);
  return function_value(geometry_.activation(direction_, slot), x);
}

double Cell::slope(int slot, double x) const {
  const auto clip = static_cast<double>(geometry_.clip);
  if (clip > 0 && std::fabs(x) > clip) return 0;
  return slope_of(geometry_.activation(direction_, slot), x);
}

double Cell::recurrent(int64_t gate, int64_t unit, const Row& operand) const {
  const int64_t hidden = geometry_.hidden;
  const double* row = r_.data() + (gate * hidden + unit) * hidden;
  double sum = bias_[static_cast<size_t>((geometry_.gates + gate) * hidden + unit)];
  for (int64_t k = 0; k < hidden; ++k) sum += row[k] * operand[static_cast<size_t>(k)];
  return sum;
}

void Cell::step(const double* x, Row& h, Row& c, CellTrace& trace) const {
  const int64_t hidden = geometry_.hidden, count = geometry_.gates * hidden;
  trace.pre.resize(static_cast<size_t>(count));
  trace.gate.resize(static_cast<size_t>(count));
  trace.h_before = h;
  trace.c_before = c;
  for (int64_t i = 0; i < count; ++i) {
    double sum = bias_[static_cast<size_t>(i)];
    for (int64_t k = 0; k < geometry_.input; ++k)
      sum += w_[static_cast<size_t>(i * geometry_.input + k)] * x[k];
    // The GRU's third gate sees h through the reset gate.
    if (geometry_.kind != CellKind::GRU || i < 2 * hidden) sum += recurrent(i / hidden, i % hidden, h);
    trace.pre[static_cast<size_t>(i)] = sum;
  }
  if (geometry_.kind == CellKind::LSTM) return step_lstm(h, c, trace);
  if (geometry_.kind == CellKind::GRU) return step_gru(h, trace);
  for (size_t j = 0; j < h.size(); ++j) h[j] = trace.gate[j] = apply(0, trace.pre[j]);
}

// Gates i o f c; p holds the blocks i o f.
void Cell::step_lstm(Row& h, Row& c, CellTrace& trace) const {
  const size_t n = h.size();
  double *pre = trace.pre.data(), *gate = trace.gate.data();
  for (size_t j = 0; j < n; ++j) {
    if (geometry_.peepholes) {
      pre[j] += peepholes_[j] * c[j];
      pre[2 * n + j] += peepholes_[2 * n + j] * c[j];
    }
    gate[j] = apply(0, pre[j]);
    gate[2 * n + j] = geometry_.input_forget ? 1 - gate[j] : apply(0, pre[2 * n + j]);
    gate[3 * n + j] = apply(1, pre[3 * n + j]);
    c[j] = gate[2 * n + j] * c[j] + gate[j] * gate[3 * n + j];
    if (geometry_.peepholes) pre[n + j] += peepholes_[n + j] * c[j];
    gate[n + j] = apply(0, pre[n + j]);
    h[j] = gate[n + j] * apply(2, c[j]);
  }
  trace.c = c;
}

// Gates z r h.
void Cell::step_gru(Row& h, CellTrace& trace) const {
  const size_t n = h.size();
  double *pre = trace.pre.data(), *gate = trace.gate.data();
  for (size_t j = 0; j < 2 * n; ++j) gate[j] = apply(0, pre[j]);
  const bool before = geometry_.linear_before_reset;
  trace.candidate = h;
  trace.recurrent.resize(n);
  if (!before)
    for (size_t j = 0; j < n; ++j) trace.candidate[j] *= gate[n + j];
  for (size_t j = 0; j < n; ++j) {
    trace.recurrent[j] = recurrent(2, static_cast<int64_t>(j), trace.candidate);
    pre[2 * n + j] += (before ? gate[n + j] : 1) * trace.recurrent[j];
    gate[2 * n + j] = apply(1, pre[2 * n + j]);
    h[j] = (1 - gate[j]) * gate[2 * n + j] + gate[j] * h[j];
  }
}

void Cell::add_transposed(int64_t gate, const double* gradient, Row& grad_h) const {
  const int64_t hidden = geometry_.hidden;
  for (int64_t j = 0; j < hidden; ++j)
    for (int64_t k = 0; k < hidden; ++k)
      grad_h[static_cast<size_t>(k)] +=
          r_[static_cast<size_t>((gate * hidden + j) * hidden + k)] * gradient[j];
}

CellGradient Cell::step_back(const CellTrace& trace, Row& grad_h, Row& grad_c, Row& grad_peepholes) const {
  CellGradient gradient;
  gradient.pre.resize(trace.pre.size());
  if (geometry_.kind == CellKind::GRU) {
    back_gru(trace, grad_h, gradient);
    return gradient;
  }
  if (geometry_.kind == CellKind::LSTM)
    back_lstm(trace, grad_h, grad_c, grad_peepholes, gradient.pre);
  else
    for (size_t j = 0; j < grad_h.size(); ++j) gradient.pre[j] = grad_h[j] * slope(0, trace.pre[j]);
  std::fill(grad_h.begin(), grad_h.end(), 0.0);
  for (int64_t gate = 0; gate < geometry_.gates; ++gate)
    add_transposed(gate, gradient.pre.data() + gate * geometry_.hidden, grad_h);
  return gradient;
}

void Cell::back_lstm(const CellTrace& trace, Row& grad_h, Row& grad_c, Row& grad_peepholes, Row& pre) const {
  const size_t n = grad_h.size();
  for (size_t j = 0; j < n; ++j) {
    const size_t i = j, o = n + j, f = 2 * n + j, g = 3 * n + j;
    const double before = trace.c_before[j];
    pre[o] = grad_h[j] * apply(2, trace.c[j]) * slope(0, trace.pre[o]);
    grad_c[j] += grad_h[j] * trace.gate[o] * slope(2, trace.c[j]) + pre[o] * peepholes_[o];
    const double forget = geometry_.input_forget ? before : 0;
    pre[i] = grad_c[j] * (trace.gate[g] - forget) * slope(0, trace.pre[i]);
    pre[f] = geometry_.input_forget ? 0 : grad_c[j] * before * slope(0, trace.pre[f]);
    pre[g] = grad_c[j] * trace.gate[i] * slope(1, trace.pre[g]);
    grad_peepholes[i] += pre[i] * before;
    grad_peepholes[o] += pre[o] * trace.c[j];
    grad_peepholes[f] += pre[f] * before;
    grad_c[j] = grad_c[j] * trace.gate[f] + pre[i] * peepholes_[i] + pre[f] * peepholes_[f];
  }
}

void Cell::back_gru(const CellTrace& trace, Row& grad_h, CellGradient& gradient) const {
  const size_t n = grad_h.size();
  const bool before = geometry_.linear_before_reset;
  Row& pre = gradient.pre;
  gradient.recurrent.resize(n);
  for (size_t j = 0; j < n; ++j) {
    const double z = trace.gate[j], reset = trace.gate[n + j];
    pre[j] = grad_h[j] * (trace.h_before[j] - trace.gate[2 * n + j]) * slope(0, trace.pre[j]);
    pre[2 * n + j] = grad_h[j] * (1 - z) * slope(1, trace.pre[2 * n + j]);
    gradient.recurrent[j] = pre[2 * n + j] * (before ? reset : 1);
    grad_h[j] *= z;
  }
  Row through(n);  // the gradient of `candidate`
  add_transposed(2, gradient.recurrent.data(), through);
  for (size_t j = 0; j < n; ++j) {
    const double reset = before ? pre[2 * n + j] * trace.recurrent[j] : through[j] * trace.h_before[j];
    pre[n + j] = reset * slope(0, trace.pre[n + j]);
    grad_h[j] += through[j] * (before ? 1 : trace.gate[n + j]);
  }
  add_transposed(0, pre.data(), grad_h);
  add_transposed(1, pre.data() + n, grad_h);
}

}  // namespace librt::ops
