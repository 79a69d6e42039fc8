// Which initializers are parameters of the network: as PyTorch's newer exporter lists them, or by the
// operators that read them.
//
// Knows: operands that are parameters, the exporter's list. Must not know: training. Private to the
// importer's folder.
#pragma once

#include "tools/compiler/train/known_weights.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {

/// What the exporter lists, and otherwise float initializers of one element.
compiler::KnownWeights known_weights(rt_onnx::ModelProto& model);

}  // namespace librt::onnx
