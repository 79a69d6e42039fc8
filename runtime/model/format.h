// The first 64 bytes of a .rt file or a checkpoint, and the rules of the container.
//
// Layout: header; a FlatBuffer (schema/model.fbs or schema/checkpoint.fbs) at graph_offset; the data area
// with the segments, each on a 64-byte boundary counted from data_offset, which is itself one. Everything is
// little-endian. The gaps are zeros.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/core/checksum.h"

namespace librt {

inline constexpr uint64_t kFileAlignment = 64;
inline constexpr uint32_t kFormatVersion = 1;

/// A non-ASCII first byte and line ends detect a transfer in text mode.
inline constexpr std::array<uint8_t, 8> kModelMagic = {0x8d, 'L', 'R', 'T', '\r', '\n', 0x1a, '\n'};
inline constexpr std::array<uint8_t, 8> kCheckpointMagic = {0x8d, 'L', 'R', 'C', '\r', '\n', 0x1a, '\n'};

struct FileHeader {
  std::array<uint8_t, 8> magic{};
  uint32_t version = kFormatVersion;
  uint32_t header_bytes = 64;
  uint64_t graph_offset = 0;
  uint64_t graph_bytes = 0;
  uint64_t data_offset = 0;
  uint64_t file_bytes = 0;
  uint64_t graph_checksum = 0;   ///< XXH3-64 of the FlatBuffer
  uint64_t header_checksum = 0;  ///< XXH3-64 of the bytes before this field
};
static_assert(sizeof(FileHeader) == 64 && std::is_trivially_copyable_v<FileHeader>);
static_assert(std::endian::native == std::endian::little, "the file format is little-endian");

inline constexpr size_t kCheckedHeaderBytes = offsetof(FileHeader, header_checksum);

constexpr uint64_t align_up(uint64_t offset, uint64_t alignment = kFileAlignment) noexcept {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace librt
