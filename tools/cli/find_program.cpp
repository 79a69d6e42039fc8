#include "tools/cli/find_program.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "runtime/core/environment.h"

namespace librt::tools {

namespace fs = std::filesystem;

std::string find_program(const std::string& name) {
  const auto is_program = [](const fs::path& path) { return access(path.c_str(), X_OK) == 0; };
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error && is_program(self.parent_path() / name)) return (self.parent_path() / name).string();
  const char* variable = environment("PATH");
  for (std::string_view rest = variable != nullptr ? variable : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (const fs::path path = fs::path(rest.substr(0, end)) / name; end > 0 && is_program(path))
      return path.string();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace librt::tools
