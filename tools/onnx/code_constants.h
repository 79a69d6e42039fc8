// Tensors that a network's code computes, as masks and tables of angles, which an ONNX file holds in the same
// way as its parameters.
//
// Knows: how PyTorch's exporters and tf2onnx name and describe them, what masks and tables of positions look
// like. Must not know: training. Private to the importer's folder.
#pragma once

#include <string>

#include "tools/onnx/initializer.h"
#include "tools/onnx/weight_uses.h"

namespace librt::onnx {

/// Whether the elements are those of a mask or of positions by sines and cosines, which are never parameters.
bool is_mask_or_wave(const rt_onnx::TensorProto& tensor, InitializerReader& reader);

class CodeConstants {
 public:
  /// For a model after untie(). Keeps references to the uses; external_folder: of external data.
  CodeConstants(const rt_onnx::ModelProto& model, const WeightUses& uses, const std::string& external_folder);

  /// Whether no framework trains the tensor. False where the file does not tell.
  bool contains(const FloatTensor& tensor);

 private:
  enum class Exporter { Other, PyTorch, PyTorchDynamo, TensorFlow };

  bool is_computed_by_pytorch(const std::string& name, const std::vector<WeightUse>& uses) const;

  Exporter exporter_ = Exporter::Other;
  bool is_parameter_lost_ = false;            ///< PyTorchDynamo: one that is listed is no tensor of the file
  bool are_parameters_initializers_ = false;  ///< PyTorch: not so where a ScriptModule was frozen
  const WeightUses& uses_;
  InitializerReader reader_;
};

}  // namespace librt::onnx
