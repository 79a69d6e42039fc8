#include "backends/vulkan/dispatch/pipeline_cache_file.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/cache_file.h"
#include "runtime/core/hash.h"

namespace librt::vulkan {
namespace {

constexpr char kMagic[8] = {'R', 'T', 'V', 'K', 'P', 'C', '0', '1'};

struct Header {
  char magic[8];
  uint64_t key_hash;
  uint64_t bytes;
  uint64_t checksum;
};

uint64_t checksum_of(const void* data, size_t size) {
  return hash_bytes(data, size, 1469598103934665603u);
}

}  // namespace

Result<std::vector<uint8_t>> read_pipelines(const std::string& path, std::string_view key) {
  std::vector<uint8_t> bytes;
  const auto all = read_cache_file(path);
  if (!all.ok() && all.status().code() != Code::NotFound) return all.status();
  Header header;
  if (!all.ok() || all->size() < sizeof header) return bytes;
  std::memcpy(&header, all->data(), sizeof header);
  bytes.assign(all->begin() + sizeof header, all->end());
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.key_hash != checksum_of(key.data(), key.size()) || header.bytes != bytes.size() ||
      header.checksum != checksum_of(bytes.data(), bytes.size()))
    bytes.clear();
  return bytes;
}

Status write_pipelines(const std::string& path, std::string_view key, const std::vector<uint8_t>& bytes) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key_hash = checksum_of(key.data(), key.size());
  header.bytes = bytes.size();
  header.checksum = checksum_of(bytes.data(), bytes.size());
  std::string all(sizeof header + bytes.size(), '\0');
  std::memcpy(all.data(), &header, sizeof header);
  std::copy(bytes.begin(), bytes.end(), all.begin() + sizeof header);
  return write_cache_file(path, all);
}

}  // namespace librt::vulkan
