// A constant that replaces a graph input; an error if it does not match the declared input.
//
// Knows: how ONNX declares inputs, values as text. Must not know: files, the graph that is written.
#pragma once

#include <map>
#include <string>

#include "runtime/core/status.h"
#include "tools/onnx/import.h"

namespace rt_onnx {
class ValueInfoProto;
}

namespace librt::onnx {

/// `given` as a tensor in the type of the input, with a shape that matches the declared one. `dims` receives
/// the extents of the input's symbols; a different extent there is an error.
Result<ConstantInput> constant_for(const rt_onnx::ValueInfoProto& input, const ConstantInput& given,
                                   std::map<std::string, int64_t>& dims);

}  // namespace librt::onnx
