// IDX files, the format of MNIST: big-endian extents, then elements; plain or compressed by gzip.
#pragma once

#include <optional>
#include <string>

#include "tools/data/array.h"

namespace librt::tools {

/// By content: two zero bytes, a known element type, a rank of 1 to 8.
bool is_idx_file(const std::string& path);
/// Elements are little endian. Returns a message with the expected and the actual size when the file is
/// truncated.
std::optional<Array> read_idx(const std::string& path, std::string& error);

}  // namespace librt::tools
