#include "backends/vulkan/dispatch/pipeline_cache_file.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace librt::vulkan {
namespace {

constexpr char kMagic[8] = {'R', 'T', 'V', 'K', 'P', 'C', '0', '1'};

struct Header {
  char magic[8];
  uint64_t key_hash;
  uint64_t bytes;
  uint64_t checksum;
};

/// FNV-1a: guards against torn and unrelated files, not against an attacker.
uint64_t fnv(const void* data, size_t size) {
  uint64_t hash = 1469598103934665603ull;
  const auto* bytes = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
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
      header.key_hash != fnv(key.data(), key.size()) || header.bytes != bytes.size() ||
      header.checksum != fnv(bytes.data(), bytes.size()))
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
    header.key_hash = fnv(key.data(), key.size());
    header.bytes = bytes.size();
    header.checksum = fnv(bytes.data(), bytes.size());
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

std::string default_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return std::string(cache) + "/librt";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache/librt";
  return {};
}

}  // namespace librt::vulkan
