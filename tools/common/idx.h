// IDX files, the format of MNIST: big-endian extents, then elements; plain or compressed by gzip.
#pragma once

#include <optional>
#include <string>

#include "tools/common/array.h"

namespace rt::tools {

/// By content: two zero bytes, a known element type, a rank of 1 to 8.
bool is_idx_file(const std::string& path);
/// Elements come out little endian. A message with the expected and the found size when the file is cut.
std::optional<Array> read_idx(const std::string& path, std::string& error);

}  // namespace rt::tools
