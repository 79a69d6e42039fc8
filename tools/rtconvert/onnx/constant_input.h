// A value that takes the place of a graph input: as the input declares it, or refused.
//
// Knows: how ONNX declares inputs, numbers as text. Must not know: files, the graph that is written.
#pragma once

#include <map>
#include <string>

#include "runtime/core/status.h"
#include "tools/rtconvert/onnx/import.h"

namespace rt_onnx {
class ValueInfoProto;
}

namespace rt::onnx {

/// The tensor that `given` is, in the type of the input and with a shape that fits what it declares. The
/// input's symbols get their extents in `dims`; one that has another extent there is an error.
Result<ConstantInput> constant_for(const rt_onnx::ValueInfoProto& input, const ConstantInput& given,
                                   std::map<std::string, int64_t>& dims);

}  // namespace rt::onnx
