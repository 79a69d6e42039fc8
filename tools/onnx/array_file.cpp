#include "tools/onnx/array_file.h"

#include <climits>

#include "tools/data/npy.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::tools {

size_t largest_array_file(std::span<const std::byte> head) {
  return is_npy(head) ? largest_file() : size_t{INT_MAX};  // Protocol Buffers hold 2 GiB
}

Result<Array> parse_array(const std::string& path, Bytes bytes) {
  if (bytes.empty())
    return Status::make(Code::Io, path, ": the file is empty; expected .npy or a TensorProto");
  std::string error;
  auto array = is_npy(bytes) ? parse_npy(std::move(bytes), error) : parse_tensor_proto(bytes, error);
  if (!array) return Status::make(Code::Io, path, ": ", error);
  return std::move(*array);
}

Result<Array> read_array(const std::string& path) {
  RT_ASSIGN(Bytes bytes, read_file(path, largest_array_file));
  return parse_array(path, std::move(bytes));
}

}  // namespace librt::tools
