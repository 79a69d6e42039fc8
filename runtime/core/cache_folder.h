// The folder that librt, its backends and the programs keep results in between processes.
#pragma once

#include <string>
#include <string_view>

namespace librt {

/// `asked`, or XDG_CACHE_HOME/librt, or HOME/.cache/librt; empty if neither variable is an absolute path.
std::string cache_folder(std::string_view asked = {});

}  // namespace librt
