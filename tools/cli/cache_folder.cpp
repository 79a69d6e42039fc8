#include "tools/cli/cache_folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

namespace librt::tools {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;
  const char* folder;  ///< below the cache folder
  std::string_view prefix, suffix;
};
constexpr Kind kKinds[] = {{"tuning results", "", "tuning-", ".txt"},
                           {"device profiles", "", "device-", ".txt"},
                           {"times of runs", "", "runs-", ".txt"},
                           {"Vulkan self-tests", "", "vulkan-", ".tests"},
                           {"Vulkan pipelines", "", "vulkan-", ".pipelines"},
                           {"converted models", "converted", "", ".rt"}};

bool is_of(const Kind& kind, const fs::path& relative) {
  std::string name = relative.filename().string();
  name.resize(std::min(name.find(".partial-"), name.size()));  // what a killed writer has left
  return relative.parent_path().string() == kind.folder && name.starts_with(kind.prefix) &&
         name.ends_with(kind.suffix);
}

}  // namespace

Cleared clear_cache(const std::string& folder) {
  Cleared cleared;
  std::error_code error;
  std::vector<fs::path> files;
  for (const char* part : {"", "converted"})
    for (fs::directory_iterator at(fs::path(folder) / part, error), end; !error && at != end;
         at.increment(error))
      if (std::error_code ignored; !at->is_directory(ignored)) files.push_back(at->path());
  std::vector<CacheGroup> groups;
  for (const Kind& kind : kKinds) groups.push_back({kind.name});
  for (const fs::path& file : files) {
    size_t kind = 0;
    while (kind < groups.size() && !is_of(kKinds[kind], file.lexically_relative(folder))) ++kind;
    if (kind == groups.size()) {
      cleared.remained.push_back(file.string() + ": not a file of librt");
      continue;
    }
    const uintmax_t bytes = fs::file_size(file, error);
    const bool has_size = !error;
    if (!fs::remove(file, error) || error) {
      cleared.remained.push_back(file.string() + ": " + error.message());
      continue;
    }
    ++groups[kind].files;
    groups[kind].bytes += has_size ? bytes : 0;
  }
  for (const CacheGroup& group : groups)
    if (group.files > 0) cleared.deleted.push_back(group);
  fs::remove(fs::path(folder) / "converted", error);  // only if it is empty
  fs::remove(folder, error);
  return cleared;
}

void report_unused(const char* program, std::string_view plan) {
  static std::set<std::string, std::less<>> reported;
  while (!plan.empty()) {
    std::string_view line = plan.substr(0, plan.find('\n'));
    plan.remove_prefix(std::min(line.size() + 1, plan.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("cache: ") && reported.emplace(line).second)
      std::fprintf(stderr, "%s: %.*s\n", program, static_cast<int>(line.size()), line.data());
  }
}

}  // namespace librt::tools
