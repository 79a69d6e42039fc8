#include "backends/cpu/support/recurrent_weights.h"

namespace librt::cpu {
namespace {
constexpr int64_t kUnits = RecurrentLoops::kUnits;
}  // namespace

CellParameters cell_parameters(const RecurrentGeometry& g, int64_t direction) noexcept {
  return {g.activation(direction, 0),
          g.activation(direction, 1),
          g.activation(direction, 2),
          g.clip,
          g.input_forget,
          g.peepholes,
          g.plain()};
}

RecurrentWeights::RecurrentWeights(const RecurrentGeometry& g) {
  const int64_t blocks = (g.hidden + kUnits - 1) / kUnits;
  groups = g.kind == CellKind::RNN ? std::min<int64_t>(4, blocks) : g.gates;
  units = g.kind == CellKind::RNN ? groups * kUnits : kUnits;
  panels = (g.hidden + units - 1) / units;
  width = groups * kUnits;
  r = panels * g.input * width;
  bias = r + panels * g.hidden * width;
  recurrent_bias = bias + panels * width;
  peepholes = recurrent_bias + (g.linear_before_reset ? panels * kUnits : 0);
  direction = peepholes + (g.kind == CellKind::LSTM ? panels * 3 * kUnits : 0);
}

void RecurrentWeights::pack(const RecurrentGeometry& g, const float* from_w, const float* from_r,
                            const float* from_b, const float* from_p, float* to) const noexcept {
  parallel_for(
      g.directions * panels, width * (g.input + g.hidden), 1, [&](int64_t begin, int64_t end) noexcept {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t d = i / panels;
          pack_panel(g, from_w + d * g.gates * g.hidden * g.input, from_r + d * g.gates * g.hidden * g.hidden,
                     from_b == nullptr ? nullptr : from_b + d * 2 * g.gates * g.hidden,
                     from_p == nullptr ? nullptr : from_p + d * 3 * g.hidden, i % panels, to + d * direction);
        }
      });
}

void RecurrentWeights::pack_panel(const RecurrentGeometry& g, const float* from_w, const float* from_r,
                                  const float* from_b, const float* from_p, int64_t panel,
                                  float* to) const noexcept {
  const auto matrix = [&](const float* row, int64_t k, float* column) {
    for (int64_t n = 0; n < k; ++n) column[n * width] = row == nullptr ? 0.0f : row[n];
  };
  for (int64_t column = 0; column < width; ++column) {
    const bool rnn = g.kind == CellKind::RNN;
    const int64_t gate = rnn ? 0 : column / kUnits;
    const int64_t unit = panel * units + (rnn ? column : column % kUnits);
    const bool real = unit < g.hidden;
    const int64_t row = gate * g.hidden + unit;
    matrix(real ? from_w + row * g.input : nullptr, g.input, to + w + panel * g.input * width + column);
    matrix(real ? from_r + row * g.hidden : nullptr, g.hidden, to + r + panel * g.hidden * width + column);
    const bool apart = g.linear_before_reset && gate == 2;  // the reset gate scales this bias too
    const float of_w = real && from_b != nullptr ? from_b[row] : 0.0f,
                of_r = real && from_b != nullptr ? from_b[g.gates * g.hidden + row] : 0.0f;
    to[bias + panel * width + column] = apart ? of_w : of_w + of_r;
    if (apart) to[recurrent_bias + panel * kUnits + column % kUnits] = of_r;
    if (g.kind == CellKind::LSTM && gate < 3)
      to[peepholes + (panel * 3 + gate) * kUnits + column % kUnits] =
          real && from_p != nullptr ? from_p[gate * g.hidden + unit] : 0.0f;
  }
}

void TransposedWeights::pack(const RecurrentGeometry& g, const float* from_r, float* to) const noexcept {
  parallel_for(g.directions * panels, rows * kColumns, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) {
      const float* from = from_r + i / panels * rows * g.hidden;
      const int64_t first = i % panels * kColumns, count = std::min(kColumns, g.hidden - first);
      float* panel = to + i * rows * kColumns;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t j = 0; j < kColumns; ++j)
          panel[row * kColumns + j] = j < count ? from[row * g.hidden + first + j] : 0.0f;
    }
  });
}

}  // namespace librt::cpu
