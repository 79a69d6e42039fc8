#include "runtime/core/cache_folder.h"

#include <cstdlib>

#include "runtime/core/text.h"

namespace librt {

std::string cache_folder(std::string_view asked) {
  if (!asked.empty()) return std::string(asked);
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    return text(xdg, "/librt");
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return text(home, "/.cache/librt");
  return {};
}

}  // namespace librt
