// Transposed convolutions whose windows lie side by side in the result, as matmuls.
//
// Knows: ConvTranspose, how its result is laid out. Must not know: quantization.
#pragma once

#include <optional>
#include <vector>

#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {

/// A ConvTranspose of one group with window = stride and without padding, so that each element of the result
/// belongs to one window.
struct SideBySide {
  std::vector<int64_t> window;  ///< the extents K..
  int64_t taps = 1;             ///< their product
  int64_t inputs = 0, channels = 0;
};
std::optional<SideBySide> side_by_side(GraphEdit& edit, NodeId id);

/// Replaces the ConvTranspose by
///
///     MatMul - Reshape to [N,S..,K..,O] - Transpose - Reshape to [N,S K..,O]
///
/// of x [N,S..,C] and `matrix` [C,K..O], its weight [C,K..,O]; bias [K..O] may be kNoValue, `shape` is any
/// value with the shape of x. Returns the MatMul.
NodeId put_matmul(GraphEdit& edit, NodeId id, const SideBySide& found, ValueId matrix, ValueId bias,
                  ValueId shape);

/// The bytes of a constant in another shape of as many elements.
ValueId reshaped_constant(GraphEdit& edit, ValueId constant, const Shape& shape);
/// A scalar, or a vector over the channels, again for each element of the window: [K..O].
ValueId by_tap(GraphEdit& edit, ValueId vector, const SideBySide& found);

/// All with constant weights and biases in f32.
Status use_matmuls(Graph& graph, const std::vector<State>& states);

}  // namespace librt::compiler
