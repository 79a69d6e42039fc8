// Arrays in files, in the two forms that models are tested with.
#pragma once

#include <string>

#include "tools/data/array.h"
#include "tools/data/file.h"

namespace librt::tools {

/// An array from a .npy file or a serialized TensorProto (.pb), distinguished by the file's first bytes.
Result<Array> read_array(const std::string& path);
/// The same of a file that has been read; path: for messages.
Result<Array> parse_array(const std::string& path, Bytes bytes);
/// The largest size of such a file.
size_t largest_array_file(std::span<const std::byte> head);

}  // namespace librt::tools
