// Lists of names in messages.
#pragma once

#include <string>
#include <vector>

namespace librt::compiler {

/// "a, b and 3 more", with at most `most` names; "none".
std::string listed(const std::vector<std::string>& names, size_t most = ~size_t{0});

}  // namespace librt::compiler
