// --constant: constants that replace graph inputs, from text, files and memory.
//
// Knows: files of tensors. Must not know: the model, which gives types and shapes (onnx/constant_input.h).
#pragma once

#include <map>
#include <string>

#include "tools/data/array.h"
#include "tools/onnx/import.h"

namespace librt::convert {

/// given: by input, values as text or the path of a .npy, .npz or .pb file. A .npz file holds one array, or
/// one with the input's name. arrays: others by input, in memory.
Result<std::map<std::string, onnx::ConstantInput>> read_constants(
    const std::map<std::string, std::string>& given, const std::map<std::string, tools::Array>& arrays);

}  // namespace librt::convert
