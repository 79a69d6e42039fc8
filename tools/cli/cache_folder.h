// The folder that librt and the programs keep results in: $XDG_CACHE_HOME/librt, or ~/.cache/librt.
//
// Knows: which files lie in it, and what a plan says of them. Must not know: what is in the files; where it
// is (runtime/core/cache_folder.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace librt::tools {

struct CacheGroup {
  std::string name;  ///< "tuning results"
  int files = 0;
  uint64_t bytes = 0;
};
struct Cleared {
  std::vector<CacheGroup> deleted;    ///< kinds of files of which there were some
  std::vector<std::string> remained;  ///< files of other programs, and what could not be deleted, with why
};

/// Deletes librt's files in the folder and the empty folders; other files stay.
Cleared clear_cache(const std::string& folder);

/// Prints on stderr the lines of a session's plan, or of its reason for the device, that say which files of
/// the folder are not used, and why; each once in a process.
void report_unused(const char* program, std::string_view plan);

/// Paragraph for --help.
inline constexpr const char* kCacheHelp =
    "Cache folder: $XDG_CACHE_HOME/librt, or ~/.cache/librt: kernel timings, device rates, Vulkan pipelines "
    "and "
    "self-tests, ONNX files converted on the fly. `rtbench --clear-cache` empties it.";

}  // namespace librt::tools
