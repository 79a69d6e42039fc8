// Writes a graph as an ONNX file, for other runtimes: the networks of the zoo.
//
// Knows: the operators that an importer's graph of a usual network has, and how ONNX spells them. Must not
// know: training, optimized graphs.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace librt::onnx {

/// The entry "infer" with its constants as initializers; inputs and outputs keep names, types and shapes
/// (images stay channels-last). `target` is written completely or not at all. Errors list all nodes that have
/// no counterpart. Returns the number of ONNX nodes.
Result<size_t> write_onnx(const ModelGraph& model, const std::string& target);

}  // namespace librt::onnx
