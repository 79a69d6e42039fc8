// NumPy's .npz files: zip archives of .npy arrays, stored or deflated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt::tools {

/// All arrays in archive order, named by their entries without ".npy". Rejected when the total uncompressed
/// size exceeds `limit` bytes.
std::optional<std::vector<Array>> read_npz(const std::string& path, std::string& error,
                                           size_t limit = size_t{1} << 36);
/// Stored without compression, as numpy.savez does; replaces the file when complete.
bool write_npz(const std::string& path, const std::vector<Array>& arrays, std::string& error);

}  // namespace librt::tools
