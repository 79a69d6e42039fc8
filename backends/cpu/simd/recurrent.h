// Loops of recurrent nets: GEMMs with packed weights, and the cells.
//
// Knows: pointers, counts, the cells' equations. Must not know: tensors, time, threads. Hidden units come in
// blocks of kUnits; the last block is padded, and results for the padding are never stored.
#pragma once

#include "backends/cpu/simd/simd.h"

#include "runtime/core/function.h"

namespace librt::cpu {

struct CellParameters {
  FunctionCall f, g, h;
  float clip = 0;  ///< 0: none
  bool input_forget = false;
  bool peepholes = false;
  bool plain = true;  ///< the usual functions, no clip, no coupling: the fast path
};

/// A block of units of one row: gate q is at pre + q * stride.
struct CellBlock {
  float* pre = nullptr;
  int64_t stride = 0;
};

/// A block in the backward pass. Gradients of the gates go to `grad`, gate q at grad + q * stride as in
/// CellBlock.
struct CellBack {
  const float* pre = nullptr;  ///< pre-activations, without peepholes
  float* grad = nullptr;
  int64_t stride = 0;
  const float* before = nullptr;  ///< LSTM: c before the step; GRU: h before it
  float* grad_h = nullptr;        ///< after the step
};

struct RecurrentLoops {
  static constexpr int64_t kUnits = 16;

  /// y[i, j] += sum over n of a[i, n] b[n, j], for i < rows, n < k, j < 16 groups (1 to 4).
  void (*matmul)(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k, float* y,
                 int64_t y_stride, int64_t rows, int64_t groups);

  /// Activates gates i o f c in place and updates c; peepholes [3][kUnits] i o f.
  void (*lstm)(const CellParameters& numbers, const CellBlock& block, const float* peepholes, float* c,
               float* h);
  /// Activates gates z r in place; reset = r h.
  void (*gru_gates)(const CellParameters& numbers, const CellBlock& block, const float* h, float* reset);
  /// Adds r[i] recurrent[i] to the third gate (recurrent may be null) and activates it in place; y = (1 - z)
  /// gate + z h.
  void (*gru)(const CellParameters& numbers, const CellBlock& block, const float* recurrent, const float* h,
              float* y);
  void (*rnn)(const CellParameters& numbers, const float* pre, float* h, int64_t n);

  /// c after a step; leaves the gates unchanged.
  void (*lstm_state)(const CellParameters& numbers, const CellBack& block, const float* peepholes, float* c);
  /// Updates grad_c to that before the step; adds to grad_peepholes [3][kUnits].
  void (*lstm_back)(const CellParameters& numbers, const CellBack& block, const float* peepholes,
                    const float* c, float* grad_c, float* grad_peepholes);
  /// The reset gate's value.
  void (*gru_reset)(const CellParameters& numbers, const float* pre, float* reset);
  /// Gradients of gates z and h, and grad_h times z. `recurrent` is the product that the reset gate scales
  /// (linear_before_reset) or null; grad_matmul is the gradient of the product with r's third block.
  void (*gru_back)(const CellParameters& numbers, const CellBack& block, const float* recurrent,
                   const float* reset, float* grad_matmul);
  /// Gradient of the reset gate and the rest of grad_h, given `through`, the gradient of that product's
  /// operand.
  void (*gru_reset_back)(const CellParameters& numbers, const CellBack& block, const float* recurrent,
                         const float* reset, const float* through);
  void (*rnn_back)(const CellParameters& numbers, const float* pre, const float* grad_h, float* grad,
                   int64_t n);
};
RT_DECLARE_LOOPS(RecurrentLoops);

}  // namespace librt::cpu
