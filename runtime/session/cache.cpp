#include "runtime/session/cache.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/core/text.h"

namespace rt {
namespace fs = std::filesystem;

std::string cache_folder(std::string_view asked) {
  if (!asked.empty()) return std::string(asked);
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    return text(xdg, "/librt");
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return text(home, "/.cache/librt");
  return {};
}

std::vector<std::string> read_cache(const std::string& folder, const std::string& file) {
  std::vector<std::string> lines;
  if (folder.empty()) return lines;
  std::ifstream in(fs::path(folder) / file);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

bool write_cache(const std::string& folder, const std::string& file, const std::vector<std::string>& lines) {
  if (folder.empty()) return false;
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path target = fs::path(folder) / file;
  const fs::path draft = fs::path(folder) / text(file, ".", static_cast<int64_t>(getpid()), ".tmp");
  {
    std::ofstream out(draft, std::ios::trunc);
    for (const std::string& line : lines) out << line << '\n';
    if (!out.flush()) return false;
  }
  fs::rename(draft, target, error);
  if (error) fs::remove(draft, error);
  return !error;
}

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) seed = (seed ^ p[i]) * 0x100000001b3u;
  return seed;
}

std::string hex(uint64_t number) {
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; number >>= 4) out[i] = "0123456789abcdef"[number & 15];
  return out;
}

}  // namespace rt
