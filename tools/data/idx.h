// IDX files, the format of MNIST: big-endian extents, then elements; plain or compressed by gzip.
#pragma once

#include <string>

#include "tools/data/array.h"
#include "tools/data/file.h"

namespace librt::tools {

/// By content: two zero bytes, a known element type, a rank of 1 to 8.
bool is_idx_file(const std::string& path);
/// Elements are little endian. Extents of 0, a file that is too short and data above `limit` bytes are
/// errors.
Result<Array> read_idx(const std::string& path, size_t limit = largest_file());

}  // namespace librt::tools
