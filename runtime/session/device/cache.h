// Small text files in the user's cache folder: tuning results, device profiles.
//
// Knows: lines. Must not know: what they mean; how files of the cache folder are opened and replaced
// (core/cache_file.h). A cache that cannot be used is not an error of its user, who goes on without it.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace librt {

/// Appends the lines of a file in the folder, without empty ones, to `lines`; none if there is no such file,
/// or `folder` is empty. An error says why the file is not used.
Status read_cache(const std::string& folder, const std::string& file, std::vector<std::string>& lines);
/// Replaces the file; does nothing if `folder` is empty.
Status write_cache(const std::string& folder, const std::string& file, const std::vector<std::string>& lines);

}  // namespace librt
