// Tensors that a network's code computes, as masks and tables of angles, which an ONNX file holds in the same
// way as its parameters.
//
// Knows: how PyTorch's exporters and tf2onnx name and describe them, what masks and tables of positions look
// like. Must not know: training. Private to the importer's folder.
#pragma once

#include <set>
#include <string>

#include "tools/onnx/initializer.h"

namespace rt_onnx {
class ModelProto;
}

namespace librt::onnx {

/// What the elements of a tensor are by themselves.
enum class Looks {
  Other,
  Mask,
  Waves,  ///< positions by sines and cosines, as no training leaves them
};
Looks looks_of(const rt_onnx::TensorProto& tensor, InitializerReader& reader);

/// The names of float tensors with at least two elements that no framework trains, as far as the file shows.
/// For a model after untie(); external_folder: of external data.
std::set<std::string> code_constants(rt_onnx::ModelProto& model, const std::string& external_folder);
/// Those that the framework has no name for, so that no file of weights holds them: not its buffers.
std::set<std::string> unnamed_constants(rt_onnx::ModelProto& model, const std::string& external_folder);

}  // namespace librt::onnx
