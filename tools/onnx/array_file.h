// Arrays in files, in the two forms that models are tested with.
#pragma once

#include <optional>
#include <string>

#include "tools/data/array.h"

namespace librt::tools {

/// An array from a .npy file or a serialized TensorProto (.pb), distinguished by the file's first bytes.
std::optional<Array> read_array(const std::string& path, std::string& error);

}  // namespace librt::tools
