// Merges the layouts in which a graph holds one weight.
//
// Knows: that constants of one name are one weight, which the importer has transposed for some of its
// readers. Must not know: training, ONNX.
#pragma once

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// Of constants with one name, the last stays; equal ones (of the copies of a body) become it, and the others
/// Transposes of it, so that they change with it. Those that are no permutation of it, or that only Shape
/// reads, stay as they are.
void unify_layouts(Graph& graph);

}  // namespace librt::compiler
