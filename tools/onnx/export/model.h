// Writes a graph as an ONNX file, for other runtimes: of a compiled model, fused and quantized or not, of an
// imported one, or of a network of the zoo.
//
// Knows: what becomes of states and of entries for training. Must not know: operators (graph_writer.h).
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::onnx {

struct WrittenModel {
  size_t nodes = 0;                 ///< of ONNX
  int64_t opset = 0;                ///< the oldest that has all of its operators, at least 20
  std::vector<std::string> states;  ///< that are inputs and outputs of the ONNX model
  std::string weights;  ///< the second file, with the weights (model_file.h); empty: there is none
};

/// The entry "infer", with standard operators of ONNX only. Inputs and outputs keep names, types and shapes.
/// Weights and other states become initializers. A state that the entry updates, such as a cache of past keys
/// and values, becomes an input of its name and an output NAME.next. Errors list all nodes that cannot be
/// written, with the reason of each.
Result<std::string> onnx_bytes(const ModelGraph& model, WrittenModel& written);

/// The same into a file, which is written completely or not at all. external: with the weights in a second
/// file, as where the model takes more than 2 GiB.
Result<WrittenModel> write_onnx(const ModelGraph& model, const std::string& target, bool external = false);

}  // namespace librt::onnx
