// Lists of names in messages.
#pragma once

#include <string>
#include <vector>

namespace librt::tools {

/// "a, b and 3 more", with at most `most` names.
std::string listed(const std::vector<std::string>& names, size_t most = ~size_t{0});

}  // namespace librt::tools
