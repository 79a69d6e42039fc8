// NumPy's .npy files, versions 1 to 3: dense little-endian C-order arrays of the types that librt supports.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt::tools {

bool is_npy(std::span<const std::byte> bytes) noexcept;
/// Fortran order is converted to row-major; big-endian and structured types are rejected with a message.
std::optional<Array> parse_npy(std::span<const std::byte> bytes, std::string& error);
/// A version 1 file. NumPy has no bfloat16: such arrays are written as f32, which holds them exactly.
std::vector<std::byte> format_npy(const Array& array);
bool write_npy(const std::string& path, const Array& array, std::string& error);

}  // namespace librt::tools
