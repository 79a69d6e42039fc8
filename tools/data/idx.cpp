#include "tools/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

namespace librt::tools {
namespace {

using File = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

constexpr int kMostRank = 8;
constexpr size_t kChunk = size_t{1} << 20;

Result<File> open_gzip(const std::string& path) {
  RT_ASSIGN(Descriptor descriptor, open_regular(path));
  File file(gzdopen(descriptor.number(), "rb"), gzclose);
  if (!file) return Status::make(Code::OutOfMemory, path, ": not enough memory to read it");
  (void)descriptor.release();
  return file;
}

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
  if (head[0] != std::byte{0} || head[1] != std::byte{0} || rank < 1 || rank > kMostRank) return std::nullopt;
  return type_of_code(head[2]);
}

}  // namespace

bool is_idx_file(const std::string& path) {
  const auto file = open_gzip(path);
  int rank = 0;
  return file.ok() && read_head(file->get(), rank).has_value();
}

Result<Array> read_idx(const std::string& path, size_t limit) {
  RT_ASSIGN(const File file, open_gzip(path));
  int rank = 0;
  const auto type = read_head(file.get(), rank);
  if (!type)
    return Status::make(Code::Io, path,
                        ": expected an IDX file (two zero bytes, an element type, a rank of 1 to 8)");
  Array array{.name = {}, .type = *type, .dims = {}, .bytes = {}};
  for (int axis = 0; axis < rank; ++axis) {
    std::byte extent[4];
    if (read_bytes(file.get(), extent, sizeof extent) != sizeof extent)
      return Status::make(Code::Io, path, ": ends within its extents");
    int64_t value = 0;
    for (std::byte byte : extent) value = value << 8 | std::to_integer<int64_t>(byte);
    if (value == 0) return Status::make(Code::Io, path, ": expected extents above 0, found 0 on axis ", axis);
    array.dims.push_back(value);
  }
  const auto size = byte_count(*type, array.dims);
  if (!size) return Status::make(Code::Io, path, ": its extents are too large");
  if (*size > limit) return too_large(path, "what its extents ask for", *size, limit);
  // Memory is used as far as there are bytes: the extents may be wrong.
  array.bytes.reserve(*size);
  while (array.bytes.size() < *size) {
    const size_t found = array.bytes.size();
    const size_t chunk = std::min(*size - found, std::max(found, kChunk));
    array.bytes.resize(found + chunk);
    const size_t got = read_bytes(file.get(), array.bytes.data() + found, chunk);
    if (got < chunk)
      return Status::make(Code::Io, path, ": expected ", *size, " bytes of data, found ", found + got);
  }
  const size_t width = size_of(*type);
  for (size_t i = 0; width > 1 && i < *size; i += width)
    std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 array.bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
  return array;
}

}  // namespace librt::tools
