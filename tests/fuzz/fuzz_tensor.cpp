// For any bytes, the reader of arrays in .pb files (TensorProto) returns an array or an error. Mutations are
// those of the tensor (onnx_mutator.h), or of bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/onnx_mutator.h"
#include "tools/onnx/array_file.h"
#include "tools/onnx/tensor_proto.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

using namespace librt::tools;
using librt::fuzz::Random;

void require(bool condition) {
  if (!condition) std::abort();
}

bool fits(const Array& array) {
  return byte_count(array.type, array.dims) == array.bytes.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const auto array = parse_array("input.pb", Bytes(first, first + size));
  require(array.ok() ? fits(*array) : !array.status().message().empty());
  if (!array.ok()) return 0;
  std::string error;
  const std::string written = format_tensor_proto(*array);
  const auto again = parse_tensor_proto(std::as_bytes(std::span(written)), error);
  require(again && again->type == array->type && again->dims == array->dims && again->bytes == array->bytes);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  rt_onnx::TensorProto tensor;
  if (random.one_in(3) || !tensor.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, most);
  librt::fuzz::mutate(tensor, random);
  const std::string bytes = tensor.SerializeAsString();
  if (bytes.size() > most) return size;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
