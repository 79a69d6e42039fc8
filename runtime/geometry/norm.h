// LayerNorm, RmsNorm and LayerNormGrad: their attributes, and x as the rows that they normalize.
#pragma once

#include <optional>

#include "runtime/graph/node_view.h"

namespace librt {

struct NormAttributes {
  int64_t axis = -1;  ///< the first normalized one; negative: from the end
  float epsilon = 0;
  bool centered = true;  ///< the mean is subtracted first
  size_t scale = 1;      ///< the input; a bias is the next one
};

inline NormAttributes norm_attributes(const Node& node) noexcept {
  if (const auto* layer = node.op.AsLayerNorm()) return {layer->axis, layer->epsilon, true, 1};
  if (const auto* rms = node.op.AsRmsNorm()) return {rms->axis, rms->epsilon, false, 1};
  const auto& gradient = node.as<op::LayerNormGradAttributes>();
  return {gradient.axis, gradient.epsilon, gradient.centered, 2};
}

/// x as [rows,columns]: each row is normalized.
struct NormForm : NormAttributes {
  int64_t rows = 0, columns = 0;

  /// Whether input i, a scale or bias, has one element for each column.
  bool covers(const NodeView& node, size_t i) const noexcept { return node.input(i).elements() == columns; }
};

/// nullopt: the axis is out of range.
inline std::optional<NormForm> norm_form(const NodeView& node) noexcept {
  const NormAttributes attributes = norm_attributes(node.node);
  const Shape& x = node.shape(0);
  const auto axis = normalized_axis(attributes.axis, x.rank());
  if (!axis) return std::nullopt;
  return NormForm{attributes, x.elements(0, *axis), x.elements(*axis, x.rank())};
}

}  // namespace librt
