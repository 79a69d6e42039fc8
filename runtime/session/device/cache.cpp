#include "runtime/session/device/cache.h"

#include <algorithm>

#include "runtime/core/cache_file.h"

namespace librt {

Status read_cache(const std::string& folder, const std::string& file, std::vector<std::string>& lines) {
  if (folder.empty()) return {};
  const auto bytes = read_cache_file(text(folder, "/", file), kLargestCacheText);
  if (!bytes.ok()) return bytes.status().code() == Code::NotFound ? Status() : bytes.status();
  for (std::string_view rest = *bytes; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

Status write_cache(const std::string& folder, const std::string& file,
                   const std::vector<std::string>& lines) {
  if (folder.empty()) return {};
  std::string all;
  for (const std::string& line : lines) append(all, line, "\n");
  return write_cache_file(text(folder, "/", file), all);
}

}  // namespace librt
