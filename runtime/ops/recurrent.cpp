// LSTM, GRU and RNN: whole sequences in one or both directions, with everything ONNX allows; and their
// gradients.
//
// Each direction and each row of the batch is an independent sequence. A row ends at its length: y is zero
// after it, and the final states are those of its last step; in reverse it begins there.
#include "runtime/ops/page_support.h"
#include "runtime/ops/recurrent_cell.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

struct Optional {
  int index;
  const char* name;
  Shape shape;
};

/// Checks the operands' types, and the shapes of all but x, w and r.
Status check_operands(const NodeView& node, const RecurrentGeometry& g) {
  RT_TRY(expect_pair(node, "x", "w", kFloats));
  RT_TRY(expect_same_dtype(node, 2, "r", 0, "x"));
  const Shape state{g.directions, g.batch, g.hidden};
  const Shape y{g.steps, g.directions, g.batch, g.hidden};
  const RecurrentOperands& at = g.operands;
  const Optional optional[] = {
      {at.bias, "b", {g.directions, 2 * g.gates * g.hidden}},
      {at.h0, "h0", state},
      {at.y, "y", y},
      {at.grad_y, "grad_y", y},
      {at.grad_h, "grad_h", state},
  };
  const Optional of_lstm[] = {
      {at.c0, "c0", state}, {at.peepholes, "p", {g.directions, 3 * g.hidden}}, {at.grad_c, "grad_c", state}};
  const auto check = [&](const Optional& operand) -> Status {
    const auto i = static_cast<size_t>(operand.index);
    if (operand.index < 0 || !node.has(i)) return {};
    return expect_like(node, i, operand.name, 0, "x", operand.shape);
  };
  for (const Optional& operand : optional) RT_TRY(check(operand));
  if (g.kind == CellKind::LSTM)
    for (const Optional& operand : of_lstm) RT_TRY(check(operand));
  const auto lengths = static_cast<size_t>(at.lengths);
  if (!node.has(lengths)) return {};
  return expect_dtype_and_shape(node, lengths, "lengths", DTypeSet{DType::I32}, {g.batch});
}

Status infer_recurrent(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  RT_TRY(check_operands(node, g));
  const DType dtype = node.dtype(0);
  const Shape state{g.directions, g.batch, g.hidden};
  if (!g.gradient) {
    RT_TRY(add_output(outputs, dtype, {g.steps, g.directions, g.batch, g.hidden}));
    RT_TRY(add_output(outputs, dtype, state));
    return g.kind == CellKind::LSTM ? add_output(outputs, dtype, state) : Status{};
  }
  const Shape sequence{g.directions, g.steps, g.batch, g.hidden};
  RT_TRY(add_output(outputs, dtype, {g.directions, g.steps, g.batch, g.gates * g.hidden}));
  RT_TRY(add_output(outputs, dtype, sequence));
  RT_TRY(add_output(outputs, dtype, state));
  if (g.kind == CellKind::RNN) return {};
  if (g.kind == CellKind::GRU) {
    RT_TRY(add_output(outputs, dtype, sequence));
    return add_output(outputs, dtype, sequence);
  }
  RT_TRY(add_output(outputs, dtype, state));
  return add_output(outputs, dtype, {g.directions, 3 * g.hidden});
}

/// The multiply-adds of both GEMMs; those of the gates are negligible.
Cost cost_recurrent(const NodeView& node) {
  Cost cost = elementwise_cost(node, 0);
  const Result<RecurrentGeometry> g = recurrent_geometry(node);
  if (!g.ok()) return cost;
  const auto rows = static_cast<double>(g->directions * g->steps * g->batch);
  const auto columns = static_cast<double>(g->gates * g->hidden),
             depth = static_cast<double>(g->input + g->hidden);
  cost.flops = rows * columns * (2 * depth + 20);
  if (g->gradient) cost.flops += rows * columns * 2 * static_cast<double>(g->hidden);
  return cost;
}

/// Row n of a state [directions, batch, hidden].
Row state_row(const Row& all, const RecurrentGeometry& g, int64_t direction, int64_t n) {
  const double* const first = all.data() + (direction * g.batch + n) * g.hidden;
  return Row(first, first + g.hidden);
}

void store_row(const TensorView& y, int64_t row, const Row& values) {
  const auto first = row * static_cast<int64_t>(values.size());
  for (size_t j = 0; j < values.size(); ++j) store(y, first + static_cast<int64_t>(j), values[j]);
}

/// Zero-fills y, for what is past a sequence's length.
void clear(const TensorView& y) {
  std::fill_n(y.as<std::byte>(), y.info.bytes(), std::byte{0});
}

Status eval_recurrent(const NodeView& node, std::span<const ConstTensorView> inputs,
                      std::span<const TensorView> outputs) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  const Row x = load_all<double>(inputs[0]);
  const int64_t states = g.directions * g.batch * g.hidden;
  const Row h0 = row_or_zeros(inputs, g.operands.h0, states);
  const Row c0 = row_or_zeros(inputs, g.kind == CellKind::LSTM ? g.operands.c0 : -1, states);
  const std::vector<int64_t> lengths = lengths_of(g, inputs);
  clear(outputs[0]);
  CellTrace trace;
  for (int64_t d = 0; d < g.directions; ++d) {
    const Cell cell(g, d, inputs);
    for (int64_t n = 0; n < g.batch; ++n) {
      Row h = state_row(h0, g, d, n), c = state_row(c0, g, d, n);
      const int64_t length = lengths[static_cast<size_t>(n)];
      for (int64_t s = 0; s < length; ++s) {
        const int64_t t = cell.time_of(s, length);
        cell.step(x.data() + (t * g.batch + n) * g.input, h, c, trace);
        store_row(outputs[0], (t * g.directions + d) * g.batch + n, h);
      }
      store_row(outputs[1], d * g.batch + n, h);
      if (g.kind == CellKind::LSTM) store_row(outputs[2], d * g.batch + n, c);
    }
  }
  return {};
}

/// One row of one direction: recomputes the forward pass, keeping each step's trace, then goes backward.
struct BackwardRow {
  const RecurrentGeometry& g;
  const Cell& cell;
  int64_t direction, n, length;

  int64_t at(int64_t s) const { return (direction * g.steps + cell.time_of(s, length)) * g.batch + n; }
  std::vector<CellTrace> forward(const Row& x, Row h, Row c) const {
    std::vector<CellTrace> traces(static_cast<size_t>(length));
    for (int64_t s = 0; s < length; ++s)
      cell.step(x.data() + (cell.time_of(s, length) * g.batch + n) * g.input, h, c,
                traces[static_cast<size_t>(s)]);
    return traces;
  }
  /// grad_h and grad_c become those of the initial states.
  void backward(const std::vector<CellTrace>& traces, const Row& grad_y, Row& grad_h, Row& grad_c,
                Row& grad_peepholes, std::span<const TensorView> outputs) const {
    for (int64_t s = length; s-- > 0;) {
      const CellTrace& trace = traces[static_cast<size_t>(s)];
      const int64_t y_row = (cell.time_of(s, length) * g.directions + direction) * g.batch + n;
      for (size_t j = 0; j < grad_h.size(); ++j)
        grad_h[j] += grad_y[static_cast<size_t>(y_row * g.hidden) + j];
      const CellGradient gradient = cell.step_back(trace, grad_h, grad_c, grad_peepholes);
      store_row(outputs[0], at(s), gradient.pre);
      store_row(outputs[1], at(s), trace.h_before);
      if (g.kind != CellKind::GRU) continue;
      store_row(outputs[3], at(s), gradient.recurrent);
      store_row(outputs[4], at(s), trace.candidate);
    }
  }
};

Status eval_gradient(const NodeView& node, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  const bool lstm = g.kind == CellKind::LSTM;
  const Row x = load_all<double>(inputs[0]);
  const int64_t states = g.directions * g.batch * g.hidden;
  const Row h0 = row_or_zeros(inputs, g.operands.h0, states);
  const Row c0 = row_or_zeros(inputs, lstm ? g.operands.c0 : -1, states);
  const Row grad_y = row_or_zeros(inputs, g.operands.grad_y, g.steps * states);
  const Row grad_h_last = row_or_zeros(inputs, g.operands.grad_h, states);
  const Row grad_c_last = row_or_zeros(inputs, lstm ? g.operands.grad_c : -1, states);
  const std::vector<int64_t> lengths = lengths_of(g, inputs);
  for (const TensorView& output : outputs) clear(output);
  for (int64_t d = 0; d < g.directions; ++d) {
    const Cell cell(g, d, inputs);
    Row grad_peepholes(static_cast<size_t>(3 * g.hidden));
    for (int64_t n = 0; n < g.batch; ++n) {
      const BackwardRow row{g, cell, d, n, lengths[static_cast<size_t>(n)]};
      const auto traces = row.forward(x, state_row(h0, g, d, n), state_row(c0, g, d, n));
      Row grad_h = state_row(grad_h_last, g, d, n), grad_c = state_row(grad_c_last, g, d, n);
      row.backward(traces, grad_y, grad_h, grad_c, grad_peepholes, outputs);
      store_row(outputs[2], d * g.batch + n, grad_h);
      if (lstm) store_row(outputs[3], d * g.batch + n, grad_c);
    }
    if (lstm) store_row(outputs[4], d, grad_peepholes);
  }
  return {};
}

// --- gradients: the operator computes those of the gates; matmuls and sums derive all others from them
// -----------------------------------------------------------------------------------------------------

ValueId columns(Emitter& e, ValueId x, int64_t first, int64_t last) {
  op::SliceAttributes attributes;
  attributes.axes = {-1};
  attributes.steps = {1};
  return e.emit(attributes, {x, e.ints(std::array{first}), e.ints(std::array{last})});
}

ValueId concatenated(Emitter& e, ValueId a, ValueId b) {
  op::ConcatAttributes attributes;
  attributes.axis = 1;
  return e.emit(attributes, {a, b});
}

/// [d,T,N,C] -> [d, T N, C]
ValueId rows_of(Emitter& e, ValueId x, int64_t directions, int64_t columns) {
  return e.reshape(x, e.ints(std::array{directions, int64_t{-1}, columns}));
}

/// a^T b over the rows of both.
ValueId matmul_over_rows(Emitter& e, ValueId a, ValueId b) {
  op::MatMulAttributes attributes;
  attributes.transpose_a = true;
  return e.emit(attributes, {a, b});
}

struct GateGradients {
  int64_t directions, hidden, gates;
  std::vector<ValueId> all;  ///< outputs of the operator
};

ValueId gradient_of_x(GradContext& c, const GateGradients& g) {
  Emitter& e = c.emit;
  const int64_t input = e.value(c.input(1)).dims[2].extent;
  const ValueId w = e.reshape(c.input(1), e.ints(std::array{g.directions, int64_t{1}, g.gates * g.hidden,
                                                            input < 0 ? int64_t{-1} : input}));
  return e.reduce_sum(e.emit(op::MatMulAttributes{}, {g.all[0], w}), {0}, false);
}

ValueId gradient_of_r(Emitter& e, const GateGradients& g, bool gru) {
  const ValueId gates = rows_of(e, g.all[0], g.directions, g.gates * g.hidden);
  const ValueId previous = rows_of(e, g.all[1], g.directions, g.hidden);
  if (!gru) return matmul_over_rows(e, gates, previous);
  return concatenated(e, matmul_over_rows(e, columns(e, gates, 0, 2 * g.hidden), previous),
                      matmul_over_rows(e, rows_of(e, g.all[3], g.directions, g.hidden),
                                       rows_of(e, g.all[4], g.directions, g.hidden)));
}

ValueId gradient_of_bias(Emitter& e, const GateGradients& g, bool gru) {
  const ValueId of_w = e.reduce_sum(g.all[0], {1, 2}, false);
  ValueId of_r = of_w;
  if (gru) of_r = concatenated(e, columns(e, of_w, 0, 2 * g.hidden), e.reduce_sum(g.all[3], {1, 2}, false));
  return concatenated(e, of_w, of_r);
}

template <class Attributes, class GradAttributes>
void recurrent_gradient(GradContext& c) {
  constexpr bool kLstm = std::is_same_v<Attributes, op::LSTMAttributes>;
  constexpr bool kGru = std::is_same_v<Attributes, op::GRUAttributes>;
  const auto& attributes = c.node.as<Attributes>();
  GradAttributes gradient;
  gradient.hidden = attributes.hidden;
  gradient.direction = attributes.direction;
  gradient.clip = attributes.clip;
  gradient.activations = attributes.activations;
  gradient.alphas = attributes.alphas;
  gradient.betas = attributes.betas;
  if constexpr (kLstm) gradient.input_forget = attributes.input_forget;
  if constexpr (kGru) gradient.linear_before_reset = attributes.linear_before_reset;
  std::vector<ValueId> operands{c.input(0), c.input(1), c.input(2), c.output(0), c.input(3),
                                c.input(4), c.input(5), c.grad(0),  c.grad(1)};
  if constexpr (kLstm) operands.insert(operands.end(), {c.input(6), c.input(7), c.grad(2)});

  GateGradients g;
  g.directions = attributes.direction == op::Direction::Bidirectional ? 2 : 1;
  g.hidden = attributes.hidden;
  g.gates = kLstm ? 4 : kGru ? 3 : 1;
  g.all = c.emit.emit_many(make_op(std::move(gradient)), operands, kLstm || kGru ? 5 : 3);
  if (!c.emit.status().ok()) return;
  if (c.needs(0)) c.set(0, gradient_of_x(c, g));
  if (c.needs(1))
    c.set(1, matmul_over_rows(
                 c.emit, rows_of(c.emit, g.all[0], g.directions, g.gates * g.hidden),
                 c.emit.reshape(c.input(0), c.emit.ints(std::array{
                                                int64_t{-1}, c.emit.value(c.input(1)).dims[2].extent}))));
  if (c.needs(2)) c.set(2, gradient_of_r(c.emit, g, kGru));
  if (c.needs(3)) c.set(3, gradient_of_bias(c.emit, g, kGru));
  if (c.needs(5)) c.set(5, g.all[2]);
  if constexpr (kLstm) {
    if (c.needs(6)) c.set(6, g.all[3]);
    if (c.needs(7)) c.set(7, g.all[4]);
  }
}

constexpr Page forward_page(OpKind kind, uint8_t inputs, uint8_t outputs) {
  return {.kind = kind,
          .inputs = {3, inputs},
          .outputs = {outputs, outputs},
          .infer = infer_recurrent,
          .cost = cost_recurrent,
          .arithmetic = Arithmetic::Matmul,
          .extents = ExtentRule::Copied};
}

constexpr Page gradient_page(OpKind kind, uint8_t inputs, uint8_t outputs) {
  return {.kind = kind,
          .inputs = {4, inputs},
          .outputs = {outputs, outputs},
          .infer = infer_recurrent,
          .cost = cost_recurrent,
          .extents = ExtentRule::Copied};
}

}  // namespace

RT_PAGE(LSTM) = forward_page(OpKind::LSTM, 8, 3);
RT_COMPILER_PAGE(LSTM) = {.eval = eval_recurrent,
                          .gradient = recurrent_gradient<op::LSTMAttributes, op::LSTMGradAttributes>,
                          .domain = {-1, 1}};
RT_PAGE(GRU) = forward_page(OpKind::GRU, 6, 2);
RT_COMPILER_PAGE(GRU) = {.eval = eval_recurrent,
                         .gradient = recurrent_gradient<op::GRUAttributes, op::GRUGradAttributes>,
                         .domain = {-1, 1}};
RT_PAGE(RNN) = forward_page(OpKind::RNN, 6, 2);
RT_COMPILER_PAGE(RNN) = {.eval = eval_recurrent,
                         .gradient = recurrent_gradient<op::RNNAttributes, op::RNNGradAttributes>,
                         .domain = {-1, 1}};

RT_PAGE(LSTMGrad) = precision_sensitive(gradient_page(OpKind::LSTMGrad, 12, 5));
RT_COMPILER_PAGE(LSTMGrad) = {
    .eval = eval_gradient, .no_gradient = "the gradient of a gradient", .domain = {-1, 1}};
RT_PAGE(GRUGrad) = precision_sensitive(gradient_page(OpKind::GRUGrad, 9, 5));
RT_COMPILER_PAGE(GRUGrad) = {
    .eval = eval_gradient, .no_gradient = "the gradient of a gradient", .domain = {-1, 1}};
RT_PAGE(RNNGrad) = precision_sensitive(gradient_page(OpKind::RNNGrad, 9, 3));
RT_COMPILER_PAGE(RNNGrad) = {
    .eval = eval_gradient, .no_gradient = "the gradient of a gradient", .domain = {-1, 1}};

}  // namespace librt::ops
