#include "runtime/core/cache_folder.h"

#include "runtime/core/environment.h"
#include "runtime/core/text.h"

namespace librt {

std::string cache_folder(std::string_view asked) {
  if (!asked.empty()) return std::string(asked);
  if (const char* xdg = environment("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    return text(xdg, "/librt");
  if (const char* home = environment("HOME"); home != nullptr && *home == '/')
    return text(home, "/.cache/librt");
  return {};
}

}  // namespace librt
