// Semantic checks of a model, operator by operator: the last check of the reader.
//
// Knows: the pages' arities and shape rules. Must not know: files, devices.
#pragma once

#include "runtime/graph/graph.h"

namespace librt {

/// Requires that verify() has accepted the model. Checks the names of inputs and outputs, arities, that
/// composites have their body, and, where all inputs of a node have known shapes, that the declared types and
/// shapes match the operator's shape rule.
Status check_meaning(const ModelGraph& model);

}  // namespace librt
