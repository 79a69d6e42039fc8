// Loops of recurrent nets: products with packed weights, and the cells.
//
// Knows: pointers, counts, the cells' equations. Must not know: tensors, time, threads. Hidden units come in
// blocks of kUnits; behind the last real unit a block is padded, and what is computed there is never stored.
#pragma once

#include <cstdint>

namespace rt::cpu {

/// Numbered as op::RecurrentActivation.
enum class CellFunctionKind : uint8_t {
  Relu = 1,
  Tanh = 2,
  Sigmoid = 3,
  Affine = 4,
  LeakyRelu = 5,
  ThresholdedRelu = 6,
  ScaledTanh = 7,
  HardSigmoid = 8,
  Elu = 9,
  Softsign = 10,
  Softplus = 11
};

struct CellFunction {
  CellFunctionKind kind = CellFunctionKind::Tanh;
  float alpha = 0, beta = 0;
};

struct CellNumbers {
  CellFunction f, g, h;
  float clip = 0;  ///< 0: none
  bool input_forget = false;
  bool peepholes = false;
  bool plain = true;  ///< the usual functions, no bound, no coupling: the fast form
};

/// A block of units of one row: gate q lies at pre + q * stride.
struct CellBlock {
  float* pre = nullptr;
  int64_t stride = 0;
};

/// A block on the way back. Gradients of the gates go to `grad`, gate q at grad + q * stride as in CellBlock.
struct CellBack {
  const float* pre = nullptr;  ///< before the activations, without peepholes
  float* grad = nullptr;
  int64_t stride = 0;
  const float* before = nullptr;  ///< LSTM: c before the step; GRU: h before it
  float* grad_h = nullptr;        ///< behind the step
};

struct RecurrentLoops {
  static constexpr int64_t kUnits = 16;

  /// y[i, j] += sum over n of a[i, n] b[n, j], for i < rows, n < k, j < 16 groups (1 to 4).
  void (*product)(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t k, float* y,
                  int64_t y_stride, int64_t rows, int64_t groups);

  /// Gates i o f c become their values; c moves on; peepholes [3][kUnits] i o f.
  void (*lstm)(const CellNumbers& numbers, const CellBlock& block, const float* peepholes, float* c,
               float* h);
  /// Gates z r become their values; reset = r h.
  void (*gru_gates)(const CellNumbers& numbers, const CellBlock& block, const float* h, float* reset);
  /// The third gate, to which r[i] recurrent[i] is added first (recurrent may be null), becomes its value;
  /// y = (1 - z) gate + z h.
  void (*gru)(const CellNumbers& numbers, const CellBlock& block, const float* recurrent, const float* h,
              float* y);
  void (*rnn)(const CellNumbers& numbers, const float* pre, float* h, int64_t n);

  /// c behind a step, of gates that stay as they are.
  void (*lstm_state)(const CellNumbers& numbers, const CellBack& block, const float* peepholes, float* c);
  /// grad_c becomes that before the step; adds to grad_peepholes [3][kUnits].
  void (*lstm_back)(const CellNumbers& numbers, const CellBack& block, const float* peepholes, const float* c,
                    float* grad_c, float* grad_peepholes);
  /// The reset gate's value.
  void (*gru_reset)(const CellNumbers& numbers, const float* pre, float* reset);
  /// Gates z and h, of which `recurrent` is what follows the reset gate (linear) or null, and grad_h times z.
  /// grad_product is the gradient of the product with r's third block.
  void (*gru_back)(const CellNumbers& numbers, const CellBack& block, const float* recurrent,
                   const float* reset, float* grad_product);
  /// The reset gate, once `through`, the gradient of that product's operand, is known; the rest of grad_h.
  void (*gru_reset_back)(const CellNumbers& numbers, const CellBack& block, const float* recurrent,
                         const float* reset, const float* through);
  void (*rnn_back)(const CellNumbers& numbers, const float* pre, const float* grad_h, float* grad, int64_t n);
};

}  // namespace rt::cpu
