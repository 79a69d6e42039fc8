// --constant: what takes the place of inputs.
//
// Knows: files of tensors. Must not know: the model, which tells types and shapes (onnx/constant_input.h).
#pragma once

#include <map>
#include <string>

#include "tools/rtconvert/onnx/import.h"

namespace rt::convert {

/// given: by input, numbers or the path of a .npy, .npz or .pb file. A .npz file holds one array, or one with
/// the input's name.
Result<std::map<std::string, onnx::ConstantInput>> read_constants(
    const std::map<std::string, std::string>& given);

}  // namespace rt::convert
