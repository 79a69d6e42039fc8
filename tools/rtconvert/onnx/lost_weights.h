// What a training of an ONNX file misses because the exporter computed it away.
//
// Knows: what PyTorch's exporters fold when they are not told that the model shall be trained. Must not know:
// training.
#pragma once

#include <string>
#include <vector>

namespace rt_onnx {
class ModelProto;
}

namespace rt::onnx {

/// Sentences for the user, each with the names that are meant and how to export instead; for a model that
/// untie() has been through.
std::vector<std::string> lost_weights(rt_onnx::ModelProto& model);

}  // namespace rt::onnx
