// Weights of recurrent nets, packed for the loops of simd/recurrent.h.
//
// Knows: panels and padding. Must not know: time, rows, threads.
//
// Hidden units are grouped in panels. A panel of an LSTM or GRU is kUnits units with all their gates side by
// side; of an RNN up to four times kUnits units. A matrix is [panels][k][width], so that a GEMM reads it
// sequentially; what belongs to gates (biases, GEMM results) has the same order: [panels][width].
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/recurrent.h"
#include "runtime/geometry/recurrent.h"

namespace librt::cpu {

struct RecurrentWeights {
  /// Offsets within one direction, in floats.
  int64_t w = 0, r = 0, bias = 0, recurrent_bias = 0, peepholes = 0;
  int64_t direction = 0;  ///< stride between directions
  int64_t panels = 0, groups = 0, width = 0;
  int64_t units = 0;  ///< per panel

  explicit RecurrentWeights(const RecurrentGeometry& geometry);

  size_t bytes(const RecurrentGeometry& geometry) const noexcept {
    return static_cast<size_t>(direction * geometry.directions) * sizeof(float);
  }
  int64_t padded_hidden() const noexcept { return panels * units; }

  /// w, r, b and p in the node's layout; b and p may be null.
  void pack(const RecurrentGeometry& geometry, const float* from_w, const float* from_r, const float* from_b,
            const float* from_p, float* to) const noexcept;

 private:
  void pack_panel(const RecurrentGeometry& geometry, const float* from_w, const float* from_r,
                  const float* from_b, const float* from_p, int64_t panel, float* to) const noexcept;
};

/// r as the right operand of GEMMs: columns in panels of kColumns, [panels][gates * hidden][kColumns] per
/// direction.
struct TransposedWeights {
  static constexpr int64_t kColumns = 4 * RecurrentLoops::kUnits;
  int64_t rows, panels;

  explicit TransposedWeights(const RecurrentGeometry& geometry) noexcept
      : rows(geometry.gates * geometry.hidden), panels((geometry.hidden + kColumns - 1) / kColumns) {}
  int64_t floats() const noexcept { return panels * rows * kColumns; }  ///< per direction
  void pack(const RecurrentGeometry& geometry, const float* from_r, float* to) const noexcept;
};

/// The activations of one direction, for the loops.
CellParameters cell_parameters(const RecurrentGeometry& geometry, int64_t direction) noexcept;

}  // namespace librt::cpu
