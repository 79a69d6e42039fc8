#include "tools/common/array.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tools/common/npy.h"
#include "tools/common/tensor_proto.h"

namespace rt::tools {

namespace {
constexpr size_t kSizes[] = {4, 2, 2, 8, 1, 1, 2, 2, 4, 4, 8, 8, 1};
constexpr std::string_view kNames[] = {"f32", "f16", "bf16", "f64", "i8",  "u8",  "i16",
                                       "u16", "i32", "u32",  "i64", "u64", "bool"};
}  // namespace

size_t element_size(ElementType type) noexcept {
  return kSizes[static_cast<size_t>(type)];
}

std::string_view element_name(ElementType type) noexcept {
  return kNames[static_cast<size_t>(type)];
}

std::optional<size_t> byte_count(ElementType type, std::span<const int64_t> dims) noexcept {
  constexpr uint64_t kLimit = uint64_t{1} << 60;
  uint64_t bytes = element_size(type);
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    const auto extent = static_cast<uint64_t>(dim);
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (bytes > kLimit / extent) return std::nullopt;
    bytes *= extent;
  }
  return empty ? 0 : static_cast<size_t>(bytes);
}

std::optional<std::vector<std::byte>> read_file(const std::string& path, std::string& error) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) {
    error = path + ": cannot be opened: " + std::strerror(errno);
    return std::nullopt;
  }
  std::vector<std::byte> bytes;
  size_t used = 0;
  if (std::fseek(file.get(), 0, SEEK_END) == 0) {
    const long size = std::ftell(file.get());
    if (size > 0 && size < (long{1} << 60)) bytes.resize(static_cast<size_t>(size) + 1);
    std::rewind(file.get());
  }
  for (;;) {
    if (used == bytes.size()) bytes.resize(used + used / 2 + (size_t{1} << 16));
    const size_t got = std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += got;
    if (got == 0) break;
  }
  if (std::ferror(file.get())) {
    error = path + ": reading failed: " + std::strerror(errno);
    return std::nullopt;
  }
  bytes.resize(used);
  return bytes;
}

std::optional<Array> read_array(const std::string& path, std::string& error) {
  const auto bytes = read_file(path, error);
  if (!bytes) return std::nullopt;
  std::string reason;
  auto array = is_npy(*bytes) ? parse_npy(*bytes, reason) : parse_tensor_proto(*bytes, reason);
  if (!array) error = path + ": " + reason;
  return array;
}

}  // namespace rt::tools
