// Files that the build puts into the program: those of page/, Chart.js, and the script that runs peers.
#pragma once

#include <string_view>

namespace librt::bench {

std::string_view page_style() noexcept;
std::string_view page_script() noexcept;
/// Empty: this program was built without it.
std::string_view chart_library() noexcept;
/// peer/peer.py.
std::string_view peer_script() noexcept;

}  // namespace librt::bench
