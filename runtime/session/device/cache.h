// Small text files in the user's cache folder: tuning results, device profiles.
//
// Knows: where the folder is and how to replace a file atomically. A cache that cannot be read or written is
// not an error, only slower. Must not know: what the lines mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace librt {

/// `asked`, or XDG_CACHE_HOME/librt, or HOME/.cache/librt; empty if there is none.
std::string cache_folder(std::string_view asked);

/// Lines of a file in the folder; empty if it cannot be read.
std::vector<std::string> read_cache(const std::string& folder, const std::string& file);
/// Replaces the file; false when that fails.
bool write_cache(const std::string& folder, const std::string& file, const std::vector<std::string>& lines);

/// FNV-1a, to name files and keys.
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0xcbf29ce484222325u) noexcept;
std::string hex(uint64_t number);

}  // namespace librt
