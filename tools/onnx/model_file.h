// An ONNX model as a file, with its weights in a second one where Protocol Buffers cannot hold them.
//
// Knows: external data, ONNX's "External Data" (docs/ExternalData.md there). Must not know: graphs of librt,
// what the weights are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt_onnx {
class ModelProto;
class TensorProto;
}  // namespace rt_onnx

namespace librt::onnx {

/// The elements of a tensor of the model, in ONNX's layout and type. They are made when they are written, so
/// that a model's weights are in memory once.
struct PendingElements {
  rt_onnx::TensorProto* tensor = nullptr;  ///< without data
  size_t bytes = 0;
  std::function<Result<Blob>()> make;
};

struct ModelFileOptions {
  bool external = false;      ///< weights go into the second file also where one would do
  std::string source_folder;  ///< where the external data lies that the model has; empty: it has none
};

/// The folder of a model's file, where its external data lies; "." for a name without one.
std::string folder_of(const std::string& path);

/// Puts all pending elements into the message.
Status fill_elements(const std::vector<PendingElements>& pending);

/// Writes `target` and, where the model takes more than the 2 GiB that Protocol Buffers hold, TARGET.data:
/// the initializers of 1 KiB and more, each at a multiple of 4 KiB. External data that the model has moves
/// there too; else it stays where it is if that is the folder of `target`, and moves into the message if not.
/// Both files are written completely before either appears, the data first. Returns the name of the second
/// file, empty if there is none. Unsupported where the model is too large without its weights.
Result<std::string> write_model_file(rt_onnx::ModelProto& model, std::vector<PendingElements> pending,
                                     const std::string& target, const ModelFileOptions& options);

}  // namespace librt::onnx
