#include "tools/onnx/array_file.h"

#include "tools/data/npy.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::tools {

std::optional<Array> read_array(const std::string& path, std::string& error) {
  const auto bytes = read_file(path, error);
  if (!bytes) return std::nullopt;
  std::string reason;
  auto array = is_npy(*bytes) ? parse_npy(*bytes, reason) : parse_tensor_proto(*bytes, reason);
  if (!array) error = path + ": " + reason;
  return array;
}

}  // namespace librt::tools
