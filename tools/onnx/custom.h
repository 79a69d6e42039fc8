// Operators of the application in an ONNX model: what the command line says about their results.
//
// Knows: the text of a signature. Must not know: nodes (custom.cpp has the importer's part).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"

namespace librt::onnx {

/// "[N,C],[C]->f32[N,C],[N]": names stand for extents of the inputs, numbers for themselves. "[*]" is any
/// shape; as a result that of the first input with "[*]". A result without a type has that of the first
/// input.
struct CustomSignature {
  struct Tensor {
    std::optional<DType> type = {};  ///< of a result
    bool any_shape = false;
    std::vector<std::string> dims = {};  ///< names, or digits
  };
  std::vector<Tensor> inputs, outputs;
};

Result<CustomSignature> parse_custom_signature(std::string_view text);

}  // namespace librt::onnx
