// LSTM, GRU and RNN in f32, and their gradients: everything between the large matmuls with the weights.
//
// Shapes: T steps, N rows, D directions, H hidden units, G gates (LSTM i o f c, GRU z r h, RNN one). A row n
// with length L executes step s at time s, or L - 1 - s in a reversed direction; past L its state is
// unchanged and its results are zero.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "runtime/core/function.h"

namespace librt::cuda {

enum class CellType : uint8_t { LSTM, GRU, RNN };

/// Shared by all kernels of one node.
struct RecurrentNet {
  CellType type = CellType::LSTM;
  bool starts_reversed = false;  ///< direction 0 runs backward; direction 1 always does
  bool input_forget = false, linear_before_reset = false;
  float clip = 0;
  FunctionCall activations[6];  ///< three per direction
  int64_t directions = 1, steps = 0, batch = 0, hidden = 0, gates = 4;
  const float* r = nullptr;          ///< [D, G H, H]
  const float* bias = nullptr;       ///< [D, 2 G H], may be null
  const float* peepholes = nullptr;  ///< [D, 3 H], LSTM, may be null
  const int32_t* lengths = nullptr;  ///< [N], may be null: all T
};

struct RecurrentForward {
  RecurrentNet net;
  const float* from_x = nullptr;                ///< [T, N, D, G H]: x times w
  const float* h0 = nullptr;                    ///< [D, N, H], may be null: zeros
  const float* c0 = nullptr;                    ///< the same, LSTM
  float* y = nullptr;                           ///< [T, D, N, H]
  float* h = nullptr;                           ///< [D, N, H]
  float* c = nullptr;                           ///< [D, N, H], LSTM
  float* other_h = nullptr;                     ///< scratch [D, N, H]
  float *update = nullptr, *reset_h = nullptr;  ///< scratch [D, N, H] each, GRU unless linear_before_reset
};
cudaError_t recurrent_forward(const RecurrentForward& arguments, cudaStream_t stream);

struct RecurrentBackward {
  RecurrentNet net;
  const float* y = nullptr;  ///< [T, D, N, H]
  const float *h0 = nullptr, *c0 = nullptr;
  const float *grad_y = nullptr, *grad_h = nullptr, *grad_c = nullptr;  ///< may be null: zeros
  float* pre = nullptr;         ///< scratch [T, N, D, G H]: x times w on entry
  float* transposed = nullptr;  ///< scratch [D, H, G H]
  float* states = nullptr;      ///< scratch [D, T, N, H]: LSTM c; GRU with linear_before_reset r3 h + bias
  float* partial = nullptr;     ///< scratch [D, N, H], GRU
  float* grad_gates = nullptr;  ///< [D, T, N, G H]
  float* before = nullptr;      ///< [D, T, N, H]
  float* grad_h0 = nullptr;     ///< [D, N, H]
  float *grad_c0 = nullptr, *grad_peepholes = nullptr;    ///< LSTM: [D, N, H], [D, 3 H]
  float *grad_recurrent = nullptr, *candidate = nullptr;  ///< GRU: [D, T, N, H] each
};
cudaError_t recurrent_backward(const RecurrentBackward& arguments, cudaStream_t stream);

}  // namespace librt::cuda
