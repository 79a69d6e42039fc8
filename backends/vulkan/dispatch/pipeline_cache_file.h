// The file that holds a driver's pipeline cache: key, length and checksum before the driver's bytes.
//
// Knows: what is in the file. Must not know: Vulkan; how files of the cache folder are opened
// (runtime/core/cache_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace librt::vulkan {

/// The driver's bytes, or none if the file is absent, damaged or has another key. An error says why a file is
/// not read.
Result<std::vector<uint8_t>> read_pipelines(const std::string& path, std::string_view key);
/// Replaces the file: a reader sees the old or the new one.
Status write_pipelines(const std::string& path, std::string_view key, const std::vector<uint8_t>& bytes);

}  // namespace librt::vulkan
