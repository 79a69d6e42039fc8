// Small text files in the user's cache folder: tuning results, device profiles.
//
// Knows: how to replace a file atomically. A cache that cannot be read or written is
// not an error, only slower. Must not know: what the lines mean.
#pragma once

#include <string>
#include <vector>

namespace librt {

/// Lines of a file in the folder; empty if it cannot be read.
std::vector<std::string> read_cache(const std::string& folder, const std::string& file);
/// Replaces the file; false when that fails.
bool write_cache(const std::string& folder, const std::string& file, const std::vector<std::string>& lines);

}  // namespace librt
