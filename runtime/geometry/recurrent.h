// Geometry of an LSTM, GRU or RNN node: extents, directions, the activation of every gate.
//
// Knows: attributes and shapes of the recurrent operators and of their gradients. Must not know: values,
// kernels.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/core/function.h"
#include "runtime/core/status.h"
#include "runtime/graph/node_view.h"

namespace librt {

enum class CellKind : uint8_t { LSTM = 0, GRU = 1, RNN = 2 };

/// Input indices of the operands; -1 for one that this operator does not have.
struct RecurrentOperands {
  int bias = 3, lengths = 4, h0 = 5, c0 = 6, peepholes = 7;
  int y = -1, grad_y = -1, grad_h = -1, grad_c = -1;  ///< of the gradients
};

struct RecurrentGeometry {
  CellKind kind = CellKind::LSTM;
  bool gradient = false;  ///< of LSTMGrad, GRUGrad or RNNGrad
  int64_t directions = 1, steps = 0, batch = 0, input = 0, hidden = 0;
  int64_t gates = 4;             ///< blocks of `hidden` rows in the weights
  bool starts_reversed = false;  ///< direction 0 runs from the end
  float clip = 0;                ///< bound on the activations' inputs; 0 for none
  bool input_forget = false;
  bool linear_before_reset = false;
  bool peepholes = false;  ///< without them a gate has no term of c: 0 times infinity would be NaN
  std::array<FunctionCall, 6> activations;  ///< three a direction: f, g, h
  RecurrentOperands operands;

  bool reversed(int64_t direction) const noexcept { return starts_reversed || direction == 1; }
  const FunctionCall& activation(int64_t direction, int slot) const noexcept {
    return activations[static_cast<size_t>(direction * 3 + slot)];
  }
  /// f sigmoid, g and h tanh (RNN: f tanh), no bound, gates not coupled.
  bool plain() const noexcept;
};

/// Reads attributes and the shapes of x, w and r; fails if they are inconsistent.
Result<RecurrentGeometry> recurrent_geometry(const NodeView& node);

}  // namespace librt
