// One direction of an LSTM, GRU or RNN in double, one row of the batch at a time: forward and backward.
//
// Knows: the equations of the three cells as ONNX states them. Must not know: pages, dtypes of results.
#pragma once

#include <vector>

#include "runtime/core/tensor_view.h"
#include "runtime/geometry/recurrent.h"

namespace librt::ops {

using Row = std::vector<double>;

/// What one forward step saves for the backward pass.
struct CellTrace {
  Row pre;        ///< [gates, hidden]: before the activations
  Row gate;       ///< [gates, hidden]: after the activations
  Row recurrent;  ///< GRU: r's third block times `candidate`, plus its bias
  Row candidate;  ///< GRU: what r's third block is multiplied by
  Row h_before, c_before;
  Row c;
};

struct CellGradient {
  Row pre;        ///< of CellTrace::pre
  Row recurrent;  ///< GRU: of CellTrace::recurrent
};

class Cell {
 public:
  /// inputs: those of the node.
  Cell(const RecurrentGeometry& geometry, int64_t direction, std::span<const ConstTensorView> inputs);

  /// Advances h and c by one step; x is [input].
  void step(const double* x, Row& h, Row& c, CellTrace& trace) const;
  /// Turns the gradients of h and c after a step into those before it. Adds to grad_peepholes [3 hidden].
  CellGradient step_back(const CellTrace& trace, Row& grad_h, Row& grad_c, Row& grad_peepholes) const;

  /// The time of step s of a row with `length` steps.
  int64_t time_of(int64_t s, int64_t length) const noexcept {
    return geometry_.reversed(direction_) ? length - 1 - s : s;
  }

 private:
  double apply(int slot, double x) const;
  double slope(int slot, double x) const;
  /// Block `gate` of r, and its bias, times `operand`.
  double recurrent(int64_t gate, int64_t unit, const Row& operand) const;
  void step_lstm(Row& h, Row& c, CellTrace& trace) const;
  void step_gru(Row& h, CellTrace& trace) const;
  void back_lstm(const CellTrace& trace, Row& grad_h, Row& grad_c, Row& grad_peepholes, Row& pre) const;
  void back_gru(const CellTrace& trace, Row& grad_h, CellGradient& gradient) const;
  /// grad_h[k] += sum over j of r[gate, j, k] gradient[j].
  void add_transposed(int64_t gate, const double* gradient, Row& grad_h) const;

  RecurrentGeometry geometry_;
  int64_t direction_;
  Row w_, r_, bias_, peepholes_;
};

/// Sequence lengths [batch] inside [0, steps]; all steps where there is no such input.
std::vector<int64_t> lengths_of(const RecurrentGeometry& geometry, std::span<const ConstTensorView> inputs);
/// All elements of an optional input; zeros where it is absent.
Row row_or_zeros(std::span<const ConstTensorView> inputs, int index, int64_t count);

}  // namespace librt::ops
