// For any bytes, the ONNX importer returns a graph or a Status.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tools/onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  librt::onnx::ImportReport report;
  const auto model =
      librt::onnx::import_onnx_bytes({reinterpret_cast<const std::byte*>(data), size}, {}, report);
  if (!model.ok() && model.status().message().empty()) std::abort();
  return 0;
}
