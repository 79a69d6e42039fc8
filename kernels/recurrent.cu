// Forward through time: one launch per step (two for a GRU whose reset gate is applied before the matmul). A
// warp computes one unit of up to eight rows: all gates' dot products with r, then the cell.
#include "kernels/recurrent.cuh"

namespace librt::cuda {
namespace {

/// Rows of h before a step; null past the last row.
RT_DEVICE void rows_of(const RecurrentNet& net, const CellBlock& block, const float* h,
                       const float* (&rows)[kCellRows]) {
  RT_UNROLL
  for (int i = 0; i < kCellRows; ++i) {
    const int64_t n = block.first_row + i;
    rows[i] = n < net.batch ? h + (block.direction * net.batch + n) * net.hidden : nullptr;
  }
}

/// Dot products of h with the blocks of r of kGates gates, starting at `gate`. Returns whether this lane has
/// a row; the warp's other lanes take part in the dot products.
template <int kGates>
RT_DEVICE bool multiply_with_r(const RecurrentNet& net, const CellBlock& block, const float* h, int gate,
                               float (&sums)[kGates]) {
  if (!block.exists(net)) return false;  // uniform over the warp
  const int64_t hidden = net.hidden;
  const float* rows[kCellRows];
  rows_of(net, block, h, rows);
  multiply_rows(rows, net.r + ((block.direction * net.gates + gate) * hidden + block.unit) * hidden,
                hidden * hidden, hidden, block.lane, sums);
  return block.has_row(net);
}

/// Offsets of this lane's row and unit at one step.
struct CellOffsets {
  bool running;
  int64_t state;  ///< in [D, N, H]
  int64_t y;      ///< in [T, D, N, H]
  int64_t gate;   ///< in [T, N, D, G H]; gates are H apart

  RT_DEVICE CellOffsets(const RecurrentNet& net, const CellBlock& block, int64_t s) {
    const int64_t n = block.row(), length = length_of(net, n),
                  time = time_of(net, block.direction, s, length);
    running = s < length;
    state = (block.direction * net.batch + n) * net.hidden + block.unit;
    y = ((time * net.directions + block.direction) * net.batch + n) * net.hidden + block.unit;
    gate = ((time * net.batch + n) * net.directions + block.direction) * net.gates * net.hidden + block.unit;
  }
};

/// A gate's preactivation: the contributions of x and h, and the biases.
struct GateSums {
  const RecurrentForward& to;
  const CellBlock& block;
  const CellOffsets& offsets;

  RT_DEVICE float from_x(int gate) const {
    return to.from_x[offsets.gate + gate * to.net.hidden] +
           bias_of(to.net, block.direction, gate, block.unit, true, false);
  }
  RT_DEVICE float operator()(int gate, float product) const {
    return from_x(gate) + product + bias_of(to.net, block.direction, gate, block.unit, false, true);
  }
};

/// The peephole contribution of the cell state c to a gate. Without peepholes 0, even for infinite c.
RT_DEVICE float peephole_term(const RecurrentNet& net, const CellBlock& block, int gate, float c) {
  return net.peepholes == nullptr ? 0.0f
                                  : net.peepholes[(block.direction * 3 + gate) * net.hidden + block.unit] * c;
}

__global__ void __launch_bounds__(kCellThreads, 4)
    step_lstm(RecurrentForward to, const float* h, float* next_h, int64_t s) {
  const CellBlock block = CellBlock::of(to.net);
  float sums[4];
  if (!multiply_with_r(to.net, block, h, 0, sums)) return;
  const CellOffsets offsets(to.net, block, s);
  if (!offsets.running) {
    next_h[offsets.state] = h[offsets.state];
    to.y[offsets.y] = 0;
    return;
  }
  const GateSums pre{to, block, offsets};
  const CellFunctions f = functions_of(to.net, block.direction);
  const float before = to.c[offsets.state];
  const float input = f.value(0, pre(0, sums[0]) + peephole_term(to.net, block, 0, before));
  const float forget =
      to.net.input_forget ? 1 - input : f.value(0, pre(2, sums[2]) + peephole_term(to.net, block, 2, before));
  const float c = forget * before + input * f.value(1, pre(3, sums[3]));
  const float output = f.value(0, pre(1, sums[1]) + peephole_term(to.net, block, 1, c));
  const float made = output * f.value(2, c);
  to.c[offsets.state] = c;
  next_h[offsets.state] = made;
  to.y[offsets.y] = made;
}

__global__ void __launch_bounds__(kCellThreads, 4)
    step_rnn(RecurrentForward to, const float* h, float* next_h, int64_t s) {
  const CellBlock block = CellBlock::of(to.net);
  float sums[1];
  if (!multiply_with_r(to.net, block, h, 0, sums)) return;
  const CellOffsets offsets(to.net, block, s);
  float made = h[offsets.state];
  if (offsets.running)
    made = functions_of(to.net, block.direction).value(0, GateSums{to, block, offsets}(0, sums[0]));
  next_h[offsets.state] = made;
  to.y[offsets.y] = offsets.running ? made : 0.0f;
}

/// Combines the gates of a GRU step and writes h and y.
RT_DEVICE void finish_gru(const RecurrentForward& to, const CellOffsets& offsets, float update,
                          float candidate, const float* h, float* next_h) {
  const float made =
      offsets.running ? (1 - update) * candidate + update * h[offsets.state] : h[offsets.state];
  next_h[offsets.state] = made;
  to.y[offsets.y] = offsets.running ? made : 0.0f;
}

/// The reset gate is applied after the matmul (linear_before_reset).
__global__ void __launch_bounds__(kCellThreads, 4)
    step_gru_linear(RecurrentForward to, const float* h, float* next_h, int64_t s) {
  const CellBlock block = CellBlock::of(to.net);
  float sums[3];
  if (!multiply_with_r(to.net, block, h, 0, sums)) return;
  const CellOffsets offsets(to.net, block, s);
  const GateSums pre{to, block, offsets};
  const CellFunctions f = functions_of(to.net, block.direction);
  const float update = f.value(0, pre(0, sums[0])), reset = f.value(0, pre(1, sums[1]));
  const float product = sums[2] + bias_of(to.net, block.direction, 2, block.unit, false, true);
  finish_gru(to, offsets, update, f.value(1, pre.from_x(2) + reset * product), h, next_h);
}

/// The reset gate is applied before the matmul: first both gates, then the candidate.
__global__ void __launch_bounds__(kCellThreads, 4)
    step_gru_gates(RecurrentForward to, const float* h, int64_t s) {
  const CellBlock block = CellBlock::of(to.net);
  float sums[2];
  if (!multiply_with_r(to.net, block, h, 0, sums)) return;
  const CellOffsets offsets(to.net, block, s);
  const GateSums pre{to, block, offsets};
  const CellFunctions f = functions_of(to.net, block.direction);
  to.update[offsets.state] = f.value(0, pre(0, sums[0]));
  to.reset_h[offsets.state] = f.value(0, pre(1, sums[1])) * h[offsets.state];
}

__global__ void __launch_bounds__(kCellThreads, 4)
    step_gru_candidate(RecurrentForward to, const float* h, float* next_h, int64_t s) {
  const CellBlock block = CellBlock::of(to.net);
  float sums[1];
  if (!multiply_with_r(to.net, block, to.reset_h, 2, sums)) return;
  const CellOffsets offsets(to.net, block, s);
  const float candidate =
      functions_of(to.net, block.direction).value(1, GateSums{to, block, offsets}(2, sums[0]));
  finish_gru(to, offsets, to.update[offsets.state], candidate, h, next_h);
}

/// Initializes a state with a copy, or with zeros.
cudaError_t begin_state(const RecurrentNet& net, float* state, const float* from, cudaStream_t stream) {
  const size_t bytes = static_cast<size_t>(net.directions * net.batch * net.hidden) * sizeof(float);
  if (bytes == 0 || state == from) return cudaSuccess;
  return from == nullptr ? cudaMemsetAsync(state, 0, bytes, stream)
                         : cudaMemcpyAsync(state, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t step(const RecurrentForward& to, const float* h, float* next_h, int64_t s, cudaStream_t stream) {
  const LaunchConfig config = launch_cells(to.net, stream);
  switch (to.net.type) {
    case CellType::LSTM: return launch(step_lstm, config, to, h, next_h, s);
    case CellType::RNN: return launch(step_rnn, config, to, h, next_h, s);
    case CellType::GRU: break;
  }
  if (to.net.linear_before_reset) return launch(step_gru_linear, config, to, h, next_h, s);
  const cudaError_t error = launch(step_gru_gates, config, to, h, s);
  return error != cudaSuccess ? error : launch(step_gru_candidate, config, to, h, next_h, s);
}

}  // namespace

cudaError_t recurrent_forward(const RecurrentForward& arguments, cudaStream_t stream) {
  const RecurrentNet& net = arguments.net;
  // h alternates between two buffers so that it ends in the result's.
  float* h[2] = {arguments.h, arguments.other_h};
  const auto state_at = [&](int64_t s) { return h[(net.steps - s) & 1]; };
  cudaError_t error = begin_state(net, state_at(0), arguments.h0, stream);
  if (error == cudaSuccess && net.type == CellType::LSTM)
    error = begin_state(net, arguments.c, arguments.c0, stream);
  for (int64_t s = 0; s < net.steps && error == cudaSuccess; ++s)
    error = step(arguments, state_at(s), state_at(s + 1), s, stream);
  return error;
}

}  // namespace librt::cuda
