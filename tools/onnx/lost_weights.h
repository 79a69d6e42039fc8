// What an ONNX file has lost of a training: weights that the exporter folded.
//
// Knows: what PyTorch's exporters fold unless told that the model will be trained. Must not know: training.
#pragma once

#include <string>
#include <vector>

namespace rt_onnx {
class ModelProto;
}

namespace librt::onnx {

/// Messages for the user, each with the affected names and how to export instead; for a model after untie().
/// external_folder: of external data.
std::vector<std::string> lost_weights(rt_onnx::ModelProto& model, const std::string& external_folder);

}  // namespace librt::onnx
