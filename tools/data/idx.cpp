#include "tools/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

namespace librt::tools {
namespace {

using File = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

constexpr int kMostAxes = 8;
constexpr size_t kChunk = size_t{64} << 20;

// gzread takes an unsigned count and returns uncompressed files as they are.
size_t read_bytes(gzFile file, std::byte* target, size_t count) {
  size_t done = 0;
  while (done < count) {
    const int got = gzread(file, target + done, static_cast<unsigned>(std::min(count - done, kChunk)));
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

std::optional<DType> type_of_code(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08: return DType::U8;
    case 0x09: return DType::I8;
    case 0x0b: return DType::I16;
    case 0x0c: return DType::I32;
    case 0x0d: return DType::F32;
    case 0x0e: return DType::F64;
    default: return std::nullopt;
  }
}

// The type and rank given by the first four bytes; nullopt when it is not an IDX file.
std::optional<DType> read_head(gzFile file, int& rank) {
  std::byte head[4];
  if (read_bytes(file, head, sizeof head) != sizeof head) return std::nullopt;
  rank = std::to_integer<int>(head[3]);
  if (head[0] != std::byte{0} || head[1] != std::byte{0} || rank < 1 || rank > kMostAxes) return std::nullopt;
  return type_of_code(head[2]);
}

}  // namespace

bool is_idx_file(const std::string& path) {
  const File file(gzopen(path.c_str(), "rb"), gzclose);
  int rank = 0;
  return file && read_head(file.get(), rank).has_value();
}

std::optional<Array> read_idx(const std::string& path, std::string& error) {
  const File file(gzopen(path.c_str(), "rb"), gzclose);
  int rank = 0;
  const auto type = file ? read_head(file.get(), rank) : std::nullopt;
  if (!type) {
    error = path + (file ? ": expected an IDX file (two zero bytes, an element type, a rank of 1 to 8)"
                         : ": cannot be opened");
    return std::nullopt;
  }
  Array array{.name = {}, .type = *type, .dims = {}, .bytes = {}};
  for (int axis = 0; axis < rank; ++axis) {
    std::byte extent[4];
    if (read_bytes(file.get(), extent, sizeof extent) != sizeof extent) {
      error = path + ": ends within its extents";
      return std::nullopt;
    }
    int64_t value = 0;
    for (std::byte byte : extent) value = value << 8 | std::to_integer<int64_t>(byte);
    array.dims.push_back(value);
  }
  const auto size = byte_count(*type, array.dims);
  if (!size) {
    error = path + ": its extents are too large";
    return std::nullopt;
  }
  // Grows with the data actually present, so that wrong extents in the header do not allocate memory.
  size_t found = 0;
  while (found < *size) {
    const size_t chunk = std::min(*size - found, kChunk);
    array.bytes.resize(found + chunk);
    const size_t got = read_bytes(file.get(), array.bytes.data() + found, chunk);
    found += got;
    if (got < chunk) {
      error = path + ": expected " + std::to_string(*size) + " bytes of data, found " + std::to_string(found);
      return std::nullopt;
    }
  }
  const size_t width = size_of(*type);
  for (size_t i = 0; width > 1 && i < *size; i += width)
    std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 array.bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
  return array;
}

}  // namespace librt::tools
