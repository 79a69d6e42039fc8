// CrossEntropy and CrossEntropyGrad: their attributes, and the logits as the rows whose losses they compute.
#pragma once

#include <optional>

#include "runtime/graph/node_view.h"

namespace librt {

struct CrossEntropyAttributes {
  int64_t axis = 1;           ///< of the classes; negative: from the end
  int64_t ignore_index = -1;  ///< a label that does not count, like those that are no class
  double label_smoothing = 0;
  size_t weights = 2;  ///< the input, of one weight for each class
};

inline CrossEntropyAttributes cross_entropy_attributes(const Node& node) noexcept {
  if (const auto* forward = node.op.AsCrossEntropy())
    return {forward->axis, forward->ignore_index, forward->label_smoothing, 2};
  const auto& gradient = node.as<op::CrossEntropyGradAttributes>();
  return {gradient.axis, gradient.ignore_index, gradient.label_smoothing, 5};
}

/// logits as [outer,classes,inner]; rows, and with them labels and results by row, are [outer,inner].
struct CrossEntropyForm : CrossEntropyAttributes {
  int64_t outer = 0, classes = 0, inner = 0;

  int64_t rows() const noexcept { return outer * inner; }
  /// The shares of the label, and of every class, in the loss of a row.
  float of_label() const noexcept { return static_cast<float>(1 - label_smoothing); }
  float of_class() const noexcept {
    return static_cast<float>(label_smoothing / static_cast<double>(classes));
  }
};

/// nullopt: the axis is out of range.
inline std::optional<CrossEntropyForm> cross_entropy_form(const NodeView& node) noexcept {
  const CrossEntropyAttributes attributes = cross_entropy_attributes(node.node);
  const Shape& x = node.shape(0);
  const auto axis = normalized_axis(attributes.axis, x.rank());
  if (!axis) return std::nullopt;
  return CrossEntropyForm{attributes, x.elements(0, *axis), x[*axis], x.elements(*axis + 1, x.rank())};
}

}  // namespace librt
