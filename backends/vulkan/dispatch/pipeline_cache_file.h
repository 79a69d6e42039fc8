// The file that holds a driver's pipeline cache: key, length and checksum before the driver's bytes.
//
// Knows: the file. Must not know: Vulkan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace librt::vulkan {

/// The driver's bytes, or none if the file is absent, damaged or has another key.
std::vector<uint8_t> read_cache_file(const std::string& path, std::string_view key);
/// Replaces the file atomically: a reader sees the old or the new one. False if it cannot be written.
bool write_cache_file(const std::string& path, std::string_view key, const std::vector<uint8_t>& bytes);
}  // namespace librt::vulkan
