// NumPy's .npy files, versions 1 to 3: dense little-endian C-order arrays of the types that librt supports.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/data/array.h"
#include "tools/data/file.h"

namespace librt::tools {

bool is_npy(std::span<const std::byte> bytes) noexcept;
/// Fortran order is converted to row-major; big-endian and structured types are rejected with a message.
std::optional<Array> parse_npy(Bytes bytes, std::string& error);
/// A version 1 file. NumPy has no bfloat16: such arrays are written as f32, which holds them exactly.
Bytes format_npy(const Array& array);
/// Replaces the file when all is written.
Status write_npy(const std::string& path, const Array& array);

/// For readers that get a file in pieces: what comes before the data.
struct NpyHeader {
  static constexpr size_t kFirst = 12;  ///< bytes from which size() is known

  DType type = DType::F32;
  std::vector<int64_t> dims;
  bool fortran_order = false;
  size_t data_bytes = 0;

  /// Number of bytes before the data; from the first kFirst bytes.
  static std::optional<size_t> size(std::span<const std::byte> bytes, std::string& error);
  /// From the bytes before the data.
  static std::optional<NpyHeader> parse(std::span<const std::byte> bytes, std::string& error);
  /// The array with this header; data: data_bytes.
  Array array(Bytes data) const;
};

}  // namespace librt::tools
