// Numbers and words in small files of /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace librt::bench {

/// The first line, without spaces at its ends. Nothing: `reason` says why, with the path and what to do about
/// a refused permission. A file of more than 4096 bytes is cut.
std::optional<std::string> line_of(const std::string& path, std::string& reason);
/// The file's line as a number that is at least 0.
std::optional<double> number_in(const std::string& path, std::string& reason);
/// Names in a folder, sorted, those that begin with `prefix`; empty if it cannot be read.
std::vector<std::string> names_in(const std::string& folder, const std::string& prefix);
bool is_there(const std::string& path);
/// The last part of what a symbolic link points to; empty if it is none.
std::string target_of(const std::string& link);

}  // namespace librt::bench
