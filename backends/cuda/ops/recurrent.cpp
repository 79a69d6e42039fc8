// LSTM, GRU, RNN and their gradients: one matmul of x with w for all steps, then the steps, all in one
// recorded list.
#include "kernels/recurrent.h"

#include <algorithm>

#include "backends/cuda/kernel.h"
#include "backends/cuda/support/gemm_plan.h"
#include "kernels/matmul.h"
#include "runtime/geometry/recurrent.h"

namespace librt::cuda {
namespace {

static_assert(static_cast<int>(CellType::RNN) == static_cast<int>(CellKind::RNN) &&
              static_cast<int>(CellType::GRU) == static_cast<int>(CellKind::GRU));

RecurrentNet net_of(const RecurrentGeometry& g) {
  RecurrentNet net{.type = static_cast<CellType>(g.kind),
                   .starts_reversed = g.starts_reversed,
                   .input_forget = g.input_forget,
                   .linear_before_reset = g.linear_before_reset,
                   .clip = g.clip,
                   .directions = g.directions,
                   .steps = g.steps,
                   .batch = g.batch,
                   .hidden = g.hidden,
                   .gates = g.gates};
  std::copy(g.activations.begin(), g.activations.end(), net.activations);
  return net;
}

/// Null for an absent operand.
const float* operand(const Call& call, int index) {
  return index < 0 ? nullptr : call.in<float>(static_cast<size_t>(index));
}

RecurrentNet bound(RecurrentNet net, const RecurrentGeometry& g, const Call& call) {
  net.r = call.in<float>(2);
  net.bias = operand(call, g.operands.bias);
  net.lengths = call.in<int32_t>(static_cast<size_t>(g.operands.lengths));
  if (g.kind == CellKind::LSTM) net.peepholes = operand(call, g.operands.peepholes);
  return net;
}

/// x times w for all steps and directions: [steps, batch, directions, gates, hidden].
cudaError_t multiply_with_w(const RecurrentGeometry& g, const Call& call, float* result) {
  const int64_t rows = g.steps * g.batch, columns = g.directions * g.gates * g.hidden;
  MatMulArguments arguments = f32_gemm(call.in<float>(0), call.in<float>(1), rows, columns, g.input);
  arguments.gemm.result = result;
  arguments.gemm.result_row = columns;
  return matmul(arguments, call.stream);
}

Status supports(const CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  const int64_t columns = g.gates * g.hidden;
  RT_TRY(gemm_fits(g.steps * g.batch, g.directions * columns, g.input, 1));
  return gemm_fits(g.steps * g.batch, columns, g.hidden, g.directions);
}

size_t floats(int64_t count) {
  return static_cast<size_t>(count) * sizeof(float);
}

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  const int64_t states = g.directions * g.batch * g.hidden;
  Requirements requirements;
  const size_t from_x = reserve_scratch(requirements, floats(g.steps * g.gates * states));
  const size_t other_h = reserve_scratch(requirements, floats(states));
  const bool two_gemms = g.kind == CellKind::GRU && !g.linear_before_reset;
  const size_t update = reserve_scratch(requirements, two_gemms ? floats(states) : 0);
  const size_t reset_h = reserve_scratch(requirements, two_gemms ? floats(states) : 0);
  return make_kernel(
      [=, net = net_of(g)](const Call& call) {
        RecurrentForward a;
        a.net = bound(net, g, call);
        a.from_x = call.scratch<float>(from_x);
        a.h0 = operand(call, g.operands.h0);
        a.y = call.out<float>(0);
        a.h = call.out<float>(1);
        a.other_h = call.scratch<float>(other_h);
        a.update = call.scratch<float>(update);
        a.reset_h = call.scratch<float>(reset_h);
        if (g.kind == CellKind::LSTM) {
          a.c0 = operand(call, g.operands.c0);
          a.c = call.out<float>(2);
        }
        const cudaError_t error = multiply_with_w(g, call, call.scratch<float>(from_x));
        return error != cudaSuccess ? error : recurrent_forward(a, call.stream);
      },
      requirements);
}

/// Offsets of a gradient's scratch buffers.
struct GradientScratch {
  size_t pre, transposed, states, partial;

  GradientScratch(const RecurrentGeometry& g, Requirements& requirements) {
    const int64_t units = g.directions * g.batch * g.hidden;
    const bool gru = g.kind == CellKind::GRU;
    pre = reserve_scratch(requirements, floats(g.steps * g.gates * units));
    transposed = reserve_scratch(requirements, floats(g.directions * g.gates * g.hidden * g.hidden));
    states = reserve_scratch(requirements, floats(g.kind == CellKind::RNN ? 0 : g.steps * units));
    partial = reserve_scratch(requirements, floats(gru ? units : 0));
  }
};

Result<KernelPtr> create_gradient(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  Requirements requirements;
  const GradientScratch scratch(g, requirements);
  return make_kernel(
      [=, net = net_of(g)](const Call& call) {
        RecurrentBackward a;
        a.net = bound(net, g, call);
        a.y = operand(call, g.operands.y);
        a.h0 = operand(call, g.operands.h0);
        a.grad_y = operand(call, g.operands.grad_y);
        a.grad_h = operand(call, g.operands.grad_h);
        a.pre = call.scratch<float>(scratch.pre);
        a.transposed = call.scratch<float>(scratch.transposed);
        a.states = call.scratch<float>(scratch.states);
        a.partial = call.scratch<float>(scratch.partial);
        a.grad_gates = call.out<float>(0);
        a.before = call.out<float>(1);
        a.grad_h0 = call.out<float>(2);
        if (g.kind == CellKind::LSTM) {
          a.c0 = operand(call, g.operands.c0);
          a.grad_c = operand(call, g.operands.grad_c);
          a.grad_c0 = call.out<float>(3);
          a.grad_peepholes = call.out<float>(4);
        } else if (g.kind == CellKind::GRU) {
          a.grad_recurrent = call.out<float>(3);
          a.candidate = call.out<float>(4);
        }
        const cudaError_t error = multiply_with_w(g, call, a.pre);
        return error != cudaSuccess ? error : recurrent_backward(a, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_recurrent();
std::span<const KernelRow> rows_recurrent() {
  constexpr DTypeSet kF32{DType::F32};
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::LSTM, "lstm", kF32),
      row<create, supports>(OpKind::GRU, "gru", kF32),
      row<create, supports>(OpKind::RNN, "rnn", kF32),
      row<create_gradient, supports>(OpKind::LSTMGrad, "lstm_grad", kF32),
      row<create_gradient, supports>(OpKind::GRUGrad, "gru_grad", kF32),
      row<create_gradient, supports>(OpKind::RNNGrad, "rnn_grad", kF32),
  };
  return kRows;
}

}  // namespace librt::cuda
