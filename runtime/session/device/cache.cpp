#include "runtime/session/device/cache.h"

#include <sys/stat.h>

#include <algorithm>

#include "runtime/core/atomic_file.h"
#include "runtime/core/text.h"
#include "runtime/model/mapped_file.h"

namespace librt {

std::vector<std::string> read_cache(const std::string& folder, const std::string& file) {
  std::vector<std::string> lines;
  if (folder.empty()) return lines;
  const auto bytes = map_file(text(folder, "/", file));
  if (!bytes.ok()) return lines;
  std::string_view rest(reinterpret_cast<const char*>(bytes.value().data), bytes.value().size);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

bool write_cache(const std::string& folder, const std::string& file, const std::vector<std::string>& lines) {
  if (folder.empty()) return false;
  // A folder that cannot be created causes an error when the file is opened.
  for (size_t end = 0; end != std::string::npos;) {
    end = folder.find('/', end + 1);
    mkdir(folder.substr(0, end).c_str(), 0777);
  }
  std::string all;
  for (const std::string& line : lines) append(all, line, "\n");
  AtomicFile out(text(folder, "/", file));
  return out.open().ok() && out.write(all.data(), all.size()).ok() && out.commit().ok();
}

}  // namespace librt
