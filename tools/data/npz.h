// NumPy's .npz files: zip archives of .npy arrays, stored or deflated.
#pragma once

#include <string>
#include <vector>

#include "tools/data/array.h"
#include "tools/data/file.h"

namespace librt::tools {

/// All arrays in archive order, named by their entries without ".npy". Code::OutOfMemory, before anything is
/// inflated, when the total uncompressed size exceeds `limit` bytes.
Result<std::vector<Array>> read_npz(const std::string& path, size_t limit = largest_file());
/// Stored without compression, as numpy.savez does; replaces the file when all is written.
Status write_npz(const std::string& path, const std::vector<Array>& arrays);

}  // namespace librt::tools
