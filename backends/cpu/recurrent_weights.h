// Weights of recurrent nets arranged for the loops of simd/recurrent.h.
//
// Knows: panels and padding. Must not know: time, rows, threads.
//
// Hidden units come in panels. A panel of an LSTM or GRU is kUnits units with all their gates side by side;
// of an RNN up to four times kUnits units. A matrix is [panels][k][width], so that a product reads it front
// to back; whatever stands beside gates (biases, results of products) has the same order: [panels][width].
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/recurrent.h"
#include "runtime/graph/recurrent_geometry.h"

namespace rt::cpu {

struct RecurrentWeights {
  /// Of one direction, in floats from its beginning.
  int64_t w = 0, r = 0, bias = 0, recurrent_bias = 0, peepholes = 0;
  int64_t direction = 0;  ///< from one direction to the next
  int64_t panels = 0, groups = 0, width = 0;
  int64_t units = 0;  ///< of a panel

  explicit RecurrentWeights(const RecurrentGeometry& geometry);

  size_t bytes(const RecurrentGeometry& geometry) const noexcept {
    return static_cast<size_t>(direction * geometry.directions) * sizeof(float);
  }
  int64_t padded_hidden() const noexcept { return panels * units; }

  /// w, r, b and p as the node has them; b and p may be null.
  void pack(const RecurrentGeometry& geometry, const float* from_w, const float* from_r, const float* from_b,
            const float* from_p, float* to) const noexcept;

 private:
  void pack_panel(const RecurrentGeometry& geometry, const float* from_w, const float* from_r,
                  const float* from_b, const float* from_p, int64_t panel, float* to) const noexcept;
};

/// r for products from the right: columns in panels of kColumns, [panels][gates * hidden][kColumns] a
/// direction.
struct TransposedWeights {
  static constexpr int64_t kColumns = 4 * RecurrentLoops::kUnits;
  int64_t rows, panels;

  explicit TransposedWeights(const RecurrentGeometry& geometry) noexcept
      : rows(geometry.gates * geometry.hidden), panels((geometry.hidden + kColumns - 1) / kColumns) {}
  int64_t floats() const noexcept { return panels * rows * kColumns; }  ///< of one direction
  void pack(const RecurrentGeometry& geometry, const float* from_r, float* to) const noexcept;
};

/// The activations of one direction, for the loops.
CellNumbers cell_numbers(const RecurrentGeometry& geometry, int64_t direction) noexcept;

}  // namespace rt::cpu
