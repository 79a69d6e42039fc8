// Does a model make sense operator by operator? The last check of the reader.
//
// Knows: the pages' arities and shape rules. Must not know: files, devices.
#pragma once

#include "runtime/graph/graph.h"

namespace rt {

/// verify() has accepted the model. Checks the names of inputs and outputs, arities, that composites own
/// their body, and, wherever all inputs of a node have known shapes, that the stated types and shapes are
/// those of the operator's rule.
Status check_meaning(const ModelGraph& model);

}  // namespace rt
