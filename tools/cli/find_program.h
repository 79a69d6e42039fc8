// Where the other programs of librt are.
#pragma once

#include <string>

namespace librt::tools {

/// This program's own file; without /proc by the path that was executed. Empty if neither is known.
std::string own_program();
/// The program of this name beside this one, or in PATH; empty if there is none.
std::string find_program(const std::string& name);

}  // namespace librt::tools
