// Dot products of rows, and the activations of recurrent cells, for both directions.
#pragma once

#include "kernels/common.cuh"
#include "kernels/functions.cuh"
#include "kernels/recurrent.h"
#include "kernels/reduce.cuh"

namespace librt::cuda {

/// A warp computes one unit of at most this many rows.
inline constexpr int kCellRows = 8;
inline constexpr int kCellThreads = 128;

RT_DEVICE float cell_slope(const FunctionCall& f, float x) {
  const float y = cell_value(f.function, x, f.alpha, f.beta);
  switch (f.function) {
    case Function::Relu: return x > 0 ? 1.0f : 0.0f;
    case Function::Sigmoid: return y * (1 - y);
    case Function::Affine: return f.alpha;
    case Function::LeakyRelu: return x < 0 ? f.alpha : 1.0f;
    case Function::ThresholdedRelu: return x > f.alpha ? 1.0f : 0.0f;
    case Function::ScaledTanh: {
      const float t = tanhf(f.beta * x);
      return f.alpha * f.beta * (1 - t * t);
    }
    case Function::HardSigmoid: return y > 0 && y < 1 ? f.alpha : 0.0f;
    case Function::Elu: return x < 0 ? y + f.alpha : 1.0f;
    case Function::Softsign: return 1 / ((1 + fabsf(x)) * (1 + fabsf(x)));
    case Function::Softplus: return 1 / (1 + expf(-x));
    default: return 1 - y * y;
  }
}

/// The activations of one direction, applied after clipping their operand.
struct CellFunctions {
  const FunctionCall* activations;
  float clip;

  RT_DEVICE float value(int slot, float x) const {
    if (clip > 0 && x == x) x = fmaxf(-clip, fminf(x, clip));
    const FunctionCall& f = activations[slot];
    return cell_value(f.function, x, f.alpha, f.beta);
  }
  RT_DEVICE float slope(int slot, float x) const {
    return clip > 0 && fabsf(x) > clip ? 0.0f : cell_slope(activations[slot], x);
  }
};

RT_DEVICE CellFunctions functions_of(const RecurrentNet& net, int64_t direction) {
  return {net.activations + direction * 3, net.clip};
}
RT_DEVICE int64_t length_of(const RecurrentNet& net, int64_t n) {
  if (net.lengths == nullptr) return net.steps;
  return max(int64_t{0}, min(static_cast<int64_t>(net.lengths[n]), net.steps));
}
/// The time at which row n executes step s; steps past its length map to themselves.
RT_DEVICE int64_t time_of(const RecurrentNet& net, int64_t direction, int64_t s, int64_t length) {
  return s < length && (net.starts_reversed || direction == 1) ? length - 1 - s : s;
}
/// The biases of a gate: those of x, of r, or their sum.
RT_DEVICE float bias_of(const RecurrentNet& net, int64_t direction, int64_t gate, int64_t unit, bool of_x,
                        bool of_r) {
  if (net.bias == nullptr) return 0;
  const float* bias = net.bias + direction * 2 * net.gates * net.hidden + gate * net.hidden + unit;
  return (of_x ? bias[0] : 0.0f) + (of_r ? bias[net.gates * net.hidden] : 0.0f);
}

/// The unit and rows of this warp.
struct CellBlock {
  int64_t direction, unit, first_row;
  int lane;

  RT_DEVICE static CellBlock of(const RecurrentNet& net) {
    const int64_t warp = global_index() / kWarpSize, groups = (net.batch + kCellRows - 1) / kCellRows;
    return {warp / (net.hidden * groups), warp % net.hidden, warp / net.hidden % groups * kCellRows,
            static_cast<int>(threadIdx.x) % kWarpSize};
  }
  RT_DEVICE bool exists(const RecurrentNet& net) const { return direction < net.directions; }
  /// The row of this lane; lanes past the rows have none.
  RT_DEVICE int64_t row() const { return first_row + lane; }
  RT_DEVICE bool has_row(const RecurrentNet& net) const { return lane < kCellRows && row() < net.batch; }
};

inline LaunchConfig launch_cells(const RecurrentNet& net, cudaStream_t stream) {
  const int64_t warps = net.directions * net.hidden * ceil_div(net.batch, kCellRows);
  return launch_each(warps * kWarpSize, stream, kCellThreads);
}

/// Warp reductions of kValues values per lane: the sum of values[v] is returned in lanes v, v + kValues, ...
template <int kValues>
RT_DEVICE float warp_sums(float (&values)[kValues], int lane) {
  RT_UNROLL
  for (int half = kValues / 2; half > 0; half /= 2) {
    const bool upper = (lane & half) != 0;
    RT_UNROLL
    for (int i = 0; i < half; ++i) {
      const float sent = upper ? values[i] : values[i + half], stays = upper ? values[i + half] : values[i];
      values[i] = stays + __shfl_xor_sync(kFullMask, sent, half);
    }
  }
  RT_UNROLL
  for (int distance = kValues; distance < kWarpSize; distance *= 2)
    values[0] += __shfl_xor_sync(kFullMask, values[0], distance);
  return values[0];
}

/// sums[g] of lane i < kCellRows = dot product of rows[i] and column g, of length `depth`. rows[i] may be
/// null: 0. The kColumns columns are column_stride apart.
template <int kColumns>
RT_DEVICE void multiply_rows(const float* const (&rows)[kCellRows], const float* columns,
                             int64_t column_stride, int64_t depth, int lane, float (&sums)[kColumns]) {
  constexpr int kPadded = kColumns == 3 ? 4 : kColumns;
  float values[kPadded * kCellRows] = {};
  for (int64_t k = lane; k < depth; k += kWarpSize) {
    float column[kColumns];
    RT_UNROLL
    for (int g = 0; g < kColumns; ++g) column[g] = columns[g * column_stride + k];
    RT_UNROLL
    for (int i = 0; i < kCellRows; ++i) {
      const float x = rows[i] == nullptr ? 0.0f : rows[i][k];
      RT_UNROLL
      for (int g = 0; g < kColumns; ++g) values[g * kCellRows + i] += x * column[g];
    }
  }
  const float sum = warp_sums(values, lane);
  RT_UNROLL
  for (int g = 0; g < kColumns; ++g) sums[g] = __shfl_sync(kFullMask, sum, g * kCellRows + lane % kCellRows);
}

}  // namespace librt::cuda
