// The bytes of an initializer: in the message, or in an external file.
//
// Knows: raw and typed data, external files, which are mapped once and shared. Must not know: graphs.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/core/status.h"
#include "runtime/graph/graph.h"

namespace rt_onnx {
class TensorProto;
}

namespace librt::onnx {

struct Initializer {
  TensorInfo info;
  Blob data;
};

class InitializerReader {
 public:
  /// External data must be in `folder` or below it; an empty folder refuses it.
  explicit InitializerReader(std::string folder) : folder_(std::move(folder)) {}

  /// Moves raw_data out of the message if present, so that weights are in memory once. Unsupported for types
  /// that librt does not have, InvalidModel for data that does not match the extents.
  Result<Initializer> read(rt_onnx::TensorProto& proto);
  /// The elements of a tensor whose type librt has, without a copy where they are stored in one piece: valid
  /// while the message is unchanged. InvalidModel for data that does not match the extents, Unsupported for
  /// other types.
  Result<Blob> view(const rt_onnx::TensorProto& proto);
  /// External data as it is stored: elements narrower than a byte are packed.
  Result<Blob> stored(const rt_onnx::TensorProto& proto);

 private:
  struct File;

  Result<Blob> external(const rt_onnx::TensorProto& proto, size_t bytes, size_t alignment);
  Result<std::shared_ptr<const File>> open(const std::string& location);

  std::string folder_;
  std::map<std::string, std::shared_ptr<const File>> files_;
};

}  // namespace librt::onnx
