// Backward through time. y contains every h, so all gates are recomputed with matmuls over all steps at once;
// then one launch per step (two for a GRU): a warp multiplies the gate gradients of the following step with
// transposed r, and continues with the cell of its unit.
#include "kernels/matmul.h"
#include "kernels/recurrent.cuh"

namespace librt::cuda {
namespace {

/// One row of one direction at one time.
struct Moment {
  int64_t direction, time, n, unit;

  /// In [D, N, H], [D, T, N, columns], [T, D, N, H] and [T, N, D, G H].
  RT_DEVICE int64_t state(const RecurrentNet& net) const {
    return (direction * net.batch + n) * net.hidden + unit;
  }
  RT_DEVICE int64_t row(const RecurrentNet& net) const {
    return (direction * net.steps + time) * net.batch + n;
  }
  RT_DEVICE int64_t sequence(const RecurrentNet& net) const { return row(net) * net.hidden + unit; }
  RT_DEVICE int64_t y(const RecurrentNet& net) const {
    return ((time * net.directions + direction) * net.batch + n) * net.hidden + unit;
  }
  RT_DEVICE int64_t gates(const RecurrentNet& net) const {
    return ((time * net.batch + n) * net.directions + direction) * net.gates * net.hidden + unit;
  }
  RT_DEVICE int64_t grad_gates(const RecurrentNet& net) const {
    return row(net) * net.gates * net.hidden + unit;
  }
  RT_DEVICE Moment at(int64_t other) const { return {direction, other, n, unit}; }
};

/// Thread i of [D, steps, N, H].
RT_DEVICE Moment moment_of(const RecurrentNet& net, int64_t i, int64_t steps) {
  const int64_t n = i / net.hidden;
  return {n / net.batch / steps, n / net.batch % steps, n % net.batch, i % net.hidden};
}

/// h before every step, zero past a row's length, and r transposed.
__global__ void __launch_bounds__(kElementwiseThreads) find_before(RecurrentBackward to) {
  const RecurrentNet& net = to.net;
  const int64_t i = global_index();
  if (i >= net.directions * net.steps * net.batch * net.hidden) return;
  const Moment step = moment_of(net, i, net.steps);
  const int64_t length = length_of(net, step.n);
  const Moment now = step.at(time_of(net, step.direction, step.time, length));
  float before = 0;
  if (step.time < length && step.time > 0)
    before = to.y[step.at(time_of(net, step.direction, step.time - 1, length)).y(net)];
  else if (step.time < length && to.h0 != nullptr)
    before = to.h0[step.state(net)];
  to.before[now.sequence(net)] = before;
}

__global__ void __launch_bounds__(kElementwiseThreads) transpose_r(RecurrentNet net, float* transposed) {
  const int64_t i = global_index(), rows = net.gates * net.hidden;
  if (i >= net.directions * rows * net.hidden) return;
  const int64_t row = i % rows, column = i / rows % net.hidden, direction = i / rows / net.hidden;
  transposed[i] = net.r[(direction * rows + row) * net.hidden + column];
}

/// Adds the biases to the gates; prepares the operand that is multiplied with the third block of a GRU's r.
__global__ void __launch_bounds__(kElementwiseThreads) begin_gates(RecurrentBackward to) {
  const RecurrentNet& net = to.net;
  const int64_t i = global_index();
  if (i >= net.directions * net.steps * net.batch * net.hidden) return;
  const Moment now = moment_of(net, i, net.steps);
  const bool linear = net.type == CellType::GRU && net.linear_before_reset;
  float* pre = to.pre + now.gates(net);
  for (int64_t gate = 0; gate < net.gates; ++gate)
    pre[gate * net.hidden] += bias_of(net, now.direction, gate, now.unit, true, !(linear && gate == 2));
  if (net.type != CellType::GRU) return;
  const float before = to.before[now.sequence(net)];
  to.candidate[now.sequence(net)] =
      linear ? before : functions_of(net, now.direction).value(0, pre[net.hidden]) * before;
  if (linear) to.states[now.sequence(net)] = bias_of(net, now.direction, 2, now.unit, false, true);
}

struct LstmGates {
  float pre[4], gate[4];  ///< i o f c

  /// Computes all but the output gate, and the next c.
  RT_DEVICE float state(const RecurrentBackward& to, const CellFunctions& f, const Moment& now,
                        float before) {
    const RecurrentNet& net = to.net;
    const float* from = to.pre + now.gates(net);
    RT_UNROLL
    for (int k = 0; k < 4; ++k) pre[k] = from[k * net.hidden];
    pre[0] += peephole(net, now, 0) * before;
    pre[2] += peephole(net, now, 2) * before;
    gate[0] = f.value(0, pre[0]);
    gate[2] = net.input_forget ? 1 - gate[0] : f.value(0, pre[2]);
    gate[3] = f.value(1, pre[3]);
    return gate[2] * before + gate[0] * gate[3];
  }
  RT_DEVICE static float peephole(const RecurrentNet& net, const Moment& now, int gate) {
    return net.peepholes == nullptr ? 0.0f
                                    : net.peepholes[(now.direction * 3 + gate) * net.hidden + now.unit];
  }
};

/// Every c of an LSTM: one thread iterates over the steps of one unit of one row.
__global__ void __launch_bounds__(kCellThreads) find_states(RecurrentBackward to) {
  const RecurrentNet& net = to.net;
  const int64_t i = global_index();
  if (i >= net.directions * net.batch * net.hidden) return;
  const Moment row = moment_of(net, i, 1);
  const int64_t length = length_of(net, row.n);
  const CellFunctions f = functions_of(net, row.direction);
  float c = to.c0 == nullptr ? 0.0f : to.c0[i];
  for (int64_t s = 0; s < length; ++s) {
    const Moment now = row.at(time_of(net, row.direction, s, length));
    LstmGates gates;
    c = gates.state(to, f, now, c);
    to.states[now.sequence(net)] = c;
  }
}

/// This lane's row at step s, and the dot products of its gradient of h.
struct BackwardStep {
  const RecurrentBackward& to;
  const CellBlock& block;
  int64_t s;

  /// Dot product with the first `columns` gate gradients at step s + 1, or with the GRU's at this step.
  RT_DEVICE float product(const float* gradients, int64_t stride, int64_t first, int64_t columns,
                          int64_t step) const {
    const RecurrentNet& net = to.net;
    const float* rows[kCellRows];
    RT_UNROLL
    for (int i = 0; i < kCellRows; ++i) {
      const int64_t n = block.first_row + i;
      rows[i] = nullptr;
      if (n >= net.batch) continue;
      const int64_t length = length_of(net, n);
      if (step >= length) continue;
      const Moment then{block.direction, time_of(net, block.direction, step, length), n, 0};
      rows[i] = gradients + then.row(net) * stride;
    }
    float sum[1];
    multiply_rows(
        rows, to.transposed + (block.direction * net.hidden + block.unit) * net.gates * net.hidden + first, 0,
        columns, block.lane, sum);
    return sum[0];
  }
  RT_DEVICE Moment now(int64_t length) const {
    return {block.direction, time_of(to.net, block.direction, s, length), block.row(), block.unit};
  }
};

/// The gradient of h after step s: from the following step, or of the last h; plus that of y.
RT_DEVICE float grad_h_after(const RecurrentBackward& to, const Moment& now, int64_t s, int64_t length,
                             float product) {
  float grad = product;
  if (s + 1 >= length) grad = to.grad_h == nullptr ? 0.0f : to.grad_h[now.state(to.net)];
  if (s >= 0 && to.grad_y != nullptr) grad += to.grad_y[now.y(to.net)];
  return grad;
}

/// Writes zeros past a row's length; returns whether step s is past it. Step -1 precedes all steps.
RT_DEVICE bool zero_past_length(const RecurrentBackward& to, const Moment& now, int64_t s, int64_t length) {
  if (s < length) return false;
  for (int64_t gate = 0; gate < to.net.gates; ++gate)
    to.grad_gates[now.grad_gates(to.net) + gate * to.net.hidden] = 0;
  if (to.net.type == CellType::GRU) to.grad_recurrent[now.sequence(to.net)] = 0;
  return true;
}

RT_DEVICE void back_lstm(const RecurrentBackward& to, const Moment& now, int64_t s, int64_t length,
                         float grad_h) {
  const RecurrentNet& net = to.net;
  const CellFunctions f = functions_of(net, now.direction);
  float before = to.c0 == nullptr ? 0.0f : to.c0[now.state(net)];
  if (s > 0) before = to.states[now.at(time_of(net, now.direction, s - 1, length)).sequence(net)];
  LstmGates gates;
  const float c = gates.state(to, f, now, before);
  float* grad = to.grad_gates + now.grad_gates(net);
  const float output = gates.pre[1] + LstmGates::peephole(net, now, 1) * c;
  const float grad_o = grad_h * f.value(2, c) * f.slope(0, output);
  float& kept = to.grad_c0[now.state(net)];
  const float grad_c =
      kept + grad_h * f.value(0, output) * f.slope(2, c) + grad_o * LstmGates::peephole(net, now, 1);
  const float coupled = net.input_forget ? before : 0.0f;
  const float grad_i = grad_c * (gates.gate[3] - coupled) * f.slope(0, gates.pre[0]);
  const float grad_f = net.input_forget ? 0.0f : grad_c * before * f.slope(0, gates.pre[2]);
  grad[0] = grad_i;
  grad[net.hidden] = grad_o;
  grad[2 * net.hidden] = grad_f;
  grad[3 * net.hidden] = grad_c * gates.gate[0] * f.slope(1, gates.pre[3]);
  kept = grad_c * gates.gate[2] + grad_i * LstmGates::peephole(net, now, 0) +
         grad_f * LstmGates::peephole(net, now, 2);
}

/// LSTM and RNN. Step -1 leaves the gradient of h0.
__global__ void __launch_bounds__(kElementwiseThreads) __launch_bounds__(kCellThreads, 4)
    step_back(RecurrentBackward to, int64_t s) {
  const RecurrentNet& net = to.net;
  const CellBlock block = CellBlock::of(net);
  if (!block.exists(net)) return;  // uniform over the warp
  const BackwardStep back{to, block, s};
  const int64_t columns = net.gates * net.hidden;
  const float product = back.product(to.grad_gates, columns, 0, columns, s + 1);
  if (!block.has_row(net)) return;
  const int64_t length = length_of(net, block.row());
  const Moment now = back.now(length);
  if (zero_past_length(to, now, s, length)) return;
  const float grad_h = grad_h_after(to, now, s, length, product);
  if (s < 0)
    to.grad_h0[now.state(net)] = grad_h;
  else if (net.type == CellType::LSTM)
    back_lstm(to, now, s, length, grad_h);
  else
    to.grad_gates[now.grad_gates(net)] =
        grad_h * functions_of(net, now.direction).slope(0, to.pre[now.gates(net)]);
}

/// A GRU's candidate preactivation; with linear_before_reset it is complete only here.
RT_DEVICE float candidate_operand(const RecurrentBackward& to, const Moment& now, float reset) {
  const float pre = to.pre[now.gates(to.net) + 2 * to.net.hidden];
  return to.net.linear_before_reset ? pre + reset * to.states[now.sequence(to.net)] : pre;
}

/// A GRU's step up to the matmul with the third block of r.
__global__ void __launch_bounds__(kElementwiseThreads) __launch_bounds__(kCellThreads, 4)
    step_back_gru(RecurrentBackward to, int64_t s) {
  const RecurrentNet& net = to.net;
  const CellBlock block = CellBlock::of(net);
  if (!block.exists(net)) return;  // uniform over the warp
  const BackwardStep back{to, block, s};
  const float product = back.product(to.grad_gates, 3 * net.hidden, 0, 2 * net.hidden, s + 1);
  if (!block.has_row(net)) return;
  const int64_t length = length_of(net, block.row());
  const Moment now = back.now(length);
  if (zero_past_length(to, now, s, length)) return;
  float& partial = to.partial[now.state(net)];
  const float grad_h = grad_h_after(to, now, s, length, s + 1 < length ? partial + product : 0.0f);
  if (s < 0) {
    to.grad_h0[now.state(net)] = grad_h;
    return;
  }
  const CellFunctions f = functions_of(net, now.direction);
  const float* pre = to.pre + now.gates(net);
  const float update = f.value(0, pre[0]), reset = f.value(0, pre[net.hidden]);
  const float operand = candidate_operand(to, now, reset);
  float* grad = to.grad_gates + now.grad_gates(net);
  const float of_candidate = grad_h * (1 - update) * f.slope(1, operand);
  grad[0] = grad_h * (to.before[now.sequence(net)] - f.value(1, operand)) * f.slope(0, pre[0]);
  grad[2 * net.hidden] = of_candidate;
  to.grad_recurrent[now.sequence(net)] = of_candidate * (net.linear_before_reset ? reset : 1.0f);
  partial = grad_h * update;
}

/// The rest of the step: the reset gate, and the gradient of h through it.
__global__ void __launch_bounds__(kElementwiseThreads) __launch_bounds__(kCellThreads, 4)
    step_back_reset(RecurrentBackward to, int64_t s) {
  const RecurrentNet& net = to.net;
  const CellBlock block = CellBlock::of(net);
  if (!block.exists(net)) return;  // uniform over the warp
  const BackwardStep back{to, block, s};
  const float through = back.product(to.grad_recurrent, net.hidden, 2 * net.hidden, net.hidden, s);
  if (!block.has_row(net)) return;
  const int64_t length = length_of(net, block.row());
  if (s >= length) return;
  const Moment now = back.now(length);
  const CellFunctions f = functions_of(net, now.direction);
  const float pre = to.pre[now.gates(net) + net.hidden];
  float* grad = to.grad_gates + now.grad_gates(net);
  const bool linear = net.linear_before_reset;
  const float of_reset =
      linear ? grad[2 * net.hidden] * to.states[now.sequence(net)] : through * to.before[now.sequence(net)];
  grad[net.hidden] = of_reset * f.slope(0, pre);
  to.partial[now.state(net)] += through * (linear ? 1.0f : f.value(0, pre));
}

/// Sums over rows and time, in this order, of gate gradients times the c that the peephole reads.
__global__ void __launch_bounds__(kCellThreads) sum_peepholes(RecurrentBackward to) {
  const RecurrentNet& net = to.net;
  const int64_t i = global_index();
  if (i >= net.directions * 3 * net.hidden) return;
  const int64_t unit = i % net.hidden, gate = i / net.hidden % 3, direction = i / net.hidden / 3;
  float sum = 0;
  for (int64_t n = 0; n < net.batch; ++n) {
    const int64_t length = length_of(net, n);
    for (int64_t s = 0; s < length; ++s) {
      const Moment now{direction, time_of(net, direction, s, length), n, unit};
      float c = 0;
      if (gate == 1)
        c = to.states[now.sequence(net)];
      else if (s > 0)
        c = to.states[now.at(time_of(net, direction, s - 1, length)).sequence(net)];
      else if (to.c0 != nullptr)
        c = to.c0[now.state(net)];
      sum += to.grad_gates[now.grad_gates(net) + gate * net.hidden] * c;
    }
  }
  to.grad_peepholes[i] = sum;
}

/// Adds the matmul of h, or of the candidates, with the blocks of r of `count` gates, for all steps, to the
/// contributions of x to those gates.
MatMulArguments gemm_with_r(const RecurrentBackward& to, int64_t gate, int64_t count, const float* operand) {
  const RecurrentNet& net = to.net;
  const int64_t rows = net.steps * net.batch;
  MatMulArguments arguments =
      f32_gemm(operand, net.r + gate * net.hidden * net.hidden, rows, count * net.hidden, net.hidden);
  Gemm& p = arguments.gemm;
  p.result = to.pre + gate * net.hidden;
  p.epilogue.residual = p.result;
  p.result_row = net.directions * net.gates * net.hidden;
  p.matrices = net.directions;
  p.batch.rank = 1;
  p.batch.extent[0] = net.directions;
  p.batch.stride[GemmBatch::First][0] = rows * net.hidden;
  p.batch.stride[GemmBatch::Second][0] = net.gates * net.hidden * net.hidden;
  p.batch.stride[GemmBatch::Result][0] = net.gates * net.hidden;
  return arguments;
}

/// Every gate's preactivation, and an LSTM's c.
cudaError_t find_gates(const RecurrentBackward& to, cudaStream_t stream) {
  const RecurrentNet& net = to.net;
  const int64_t states = net.directions * net.batch * net.hidden;
  const LaunchConfig each = launch_each(states * net.steps, stream);
  cudaError_t error = launch(find_before, each, to);
  if (error == cudaSuccess)
    error = launch(transpose_r, launch_each(net.directions * net.gates * net.hidden * net.hidden, stream),
                   net, to.transposed);
  const bool gru = net.type == CellType::GRU;
  if (error == cudaSuccess) error = matmul(gemm_with_r(to, 0, gru ? 2 : net.gates, to.before), stream);
  if (error == cudaSuccess) error = launch(begin_gates, each, to);
  if (error == cudaSuccess && gru) {
    MatMulArguments third = gemm_with_r(to, 2, 1, to.candidate);
    if (net.linear_before_reset) {
      Gemm& p = third.gemm;
      p.result = to.states;
      p.epilogue.residual = p.result;
      p.result_row = net.hidden;
      p.batch.stride[GemmBatch::Result][0] = p.batch.stride[GemmBatch::First][0];
    }
    error = matmul(third, stream);
  }
  if (error == cudaSuccess && net.type == CellType::LSTM)
    error = launch(find_states, launch_each(states, stream, kCellThreads), to);
  return error;
}

}  // namespace

cudaError_t recurrent_backward(const RecurrentBackward& arguments, cudaStream_t stream) {
  const RecurrentNet& net = arguments.net;
  cudaError_t error = find_gates(arguments, stream);
  const bool lstm = net.type == CellType::LSTM, gru = net.type == CellType::GRU;
  if (lstm && error == cudaSuccess) {
    const size_t bytes = static_cast<size_t>(net.directions * net.batch * net.hidden) * sizeof(float);
    if (bytes > 0)
      error = arguments.grad_c == nullptr ? cudaMemsetAsync(arguments.grad_c0, 0, bytes, stream)
                                          : cudaMemcpyAsync(arguments.grad_c0, arguments.grad_c, bytes,
                                                            cudaMemcpyDeviceToDevice, stream);
  }
  const LaunchConfig config = launch_cells(net, stream);
  for (int64_t s = net.steps - 1; s >= -1 && error == cudaSuccess; --s) {
    error = launch(gru ? step_back_gru : step_back, config, arguments, s);
    if (gru && s >= 0 && error == cudaSuccess) error = launch(step_back_reset, config, arguments, s);
  }
  if (lstm && error == cudaSuccess)
    error =
        launch(sum_peepholes, launch_each(net.directions * 3 * net.hidden, stream, kCellThreads), arguments);
  return error;
}

}  // namespace librt::cuda
