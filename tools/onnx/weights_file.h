// Weights from and to files beside an ONNX model, by the names of its initializers.
//
// Knows: where an ONNX file stores its weights. Must not know: the formats of weight files, the importer's
// changes to weights.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/data/array.h"

namespace rt_onnx {
class ModelProto;
class NodeProto;
class TensorProto;
}  // namespace rt_onnx

namespace librt::onnx {

using Weights = std::map<std::string, rt_onnx::TensorProto*, std::less<>>;

/// The tensor that a Constant node holds; null for other nodes, and for other kinds of constants.
rt_onnx::TensorProto* tensor_of_constant(rt_onnx::NodeProto& node);

/// Initializers, and what Constant nodes of the main graph and of functions hold, by the names of their
/// values; of equal names the first. nested_weights.h makes names unique.
Weights weights_of(rt_onnx::ModelProto& model);

struct ReplacedWeights {
  size_t count = 0;
  /// Weights of floats with an axis that the arrays have not, and no constants of the code.
  std::vector<std::string> kept;
};

/// Each array replaces the weight of its name, which must have its shape, and its type; weights of f32 also
/// take f16 and bf16, which are widened exactly. turned: names of matrices that the model holds transposed
/// (Untied). All problems are reported at once, and then nothing is replaced. For a model after untie().
Result<ReplacedWeights> replace_weights(rt_onnx::ModelProto& model, const std::vector<tools::Array>& arrays,
                                        const std::set<std::string>& turned,
                                        const std::string& external_folder);

/// A weight as an array, in ONNX's layout; external_folder: of a weight in another file.
Result<tools::Array> weight_array(const std::string& name, const rt_onnx::TensorProto& tensor,
                                  const std::string& external_folder);
/// A matrix in the other order.
tools::Array transposed(const tools::Array& array);

}  // namespace librt::onnx
