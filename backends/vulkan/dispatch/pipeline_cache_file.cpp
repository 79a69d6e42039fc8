#include "backends/vulkan/dispatch/pipeline_cache_file.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

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

std::vector<uint8_t> read_cache_file(const std::string& path, std::string_view key) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Header header;
  if (all.size() < sizeof header) return {};
  std::memcpy(&header, all.data(), sizeof header);
  std::vector<uint8_t> bytes(all.begin() + sizeof header, all.end());
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.key_hash != checksum_of(key.data(), key.size()) || header.bytes != bytes.size() ||
      header.checksum != checksum_of(bytes.data(), bytes.size()))
    return {};
  return bytes;
}

bool write_cache_file(const std::string& path, std::string_view key, const std::vector<uint8_t>& bytes) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.key_hash = checksum_of(key.data(), key.size());
    header.bytes = bytes.size();
    header.checksum = checksum_of(bytes.data(), bytes.size());
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.flush();
    if (!file) {
      file.close();
      std::filesystem::remove(temporary, error);
      return false;
    }
  }
  std::filesystem::rename(temporary, path, error);
  if (!error) return true;
  std::filesystem::remove(temporary, error);
  return false;
}

}  // namespace librt::vulkan
