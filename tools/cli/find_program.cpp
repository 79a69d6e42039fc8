#include "tools/cli/find_program.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "runtime/core/environment.h"

namespace librt::tools {

namespace fs = std::filesystem;

std::string own_program() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) return self.string();
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const fs::path known = executed != nullptr ? fs::canonical(executed, error) : fs::path();
  return error ? std::string() : known.string();
}

std::string find_program(const std::string& name) {
  const auto is_program = [](const fs::path& path) { return access(path.c_str(), X_OK) == 0; };
  const fs::path self = own_program();
  if (!self.empty() && is_program(self.parent_path() / name)) return (self.parent_path() / name).string();
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
