// For any bytes, the ONNX importer returns a graph or a Status, for inference and for training. Mutations are
// those of the model (onnx_mutator.h), or of bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tests/fuzz/onnx_mutator.h"
#include "tools/onnx/import.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

using librt::fuzz::Random;

bool parse(rt_onnx::ModelProto& model, const uint8_t* data, size_t size) {
  return size <= (1 << 20) && model.ParseFromArray(data, static_cast<int>(size)) && model.has_graph();
}

/// The message's size; 0 if it does not fit.
size_t write(const rt_onnx::ModelProto& model, uint8_t* data, size_t most) {
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > most) return 0;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const bool trains : {false, true}) {
    librt::onnx::ImportReport report;
    const auto model = librt::onnx::import_onnx_bytes({reinterpret_cast<const std::byte*>(data), size},
                                                      {.untie = trains}, report);
    if (!model.ok() && model.status().message().empty()) std::abort();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  rt_onnx::ModelProto model;
  if (random.one_in(8) || !parse(model, data, size)) return LLVMFuzzerMutate(data, size, most);
  librt::fuzz::mutate(model, random);
  const size_t written = write(model, data, most);
  return written != 0 ? written : size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t most, unsigned seed) {
  Random random(seed);
  rt_onnx::ModelProto model, from;
  if (!parse(model, data, size) || !parse(from, other, other_size)) return 0;
  librt::fuzz::splice(model, from, random);
  return write(model, out, most);
}
