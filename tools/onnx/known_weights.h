// Which tensors are parameters of the network: as PyTorch's newer exporter lists them, or by the operators
// that read them.
//
// Knows: operands that are parameters, the exporter's list. Must not know: training. Private to the
// importer's folder.
#pragma once

#include <string>

#include "tools/compiler/train/known_weights.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {

/// What the exporter lists, otherwise float initializers of one element, and constants of the network's code
/// (code_constants.h). For a model after untie(); external_folder: of external data.
compiler::KnownWeights known_weights(rt_onnx::ModelProto& model, const std::string& external_folder);

}  // namespace librt::onnx
