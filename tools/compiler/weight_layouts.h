// One weight that a graph holds in several layouts, as one.
//
// Knows: that constants of one name are one weight, which the importer has transposed for some of its
// readers. Must not know: training, ONNX.
#pragma once

#include "runtime/graph/graph.h"

namespace rt::compiler {

/// Of constants that have one name, the last stays; the others become Transposes of it, so that they change
/// with it. Those that are no permutation of it, or that nothing but Shape reads, stay as they are.
void unify_layouts(Graph& graph);

}  // namespace rt::compiler
