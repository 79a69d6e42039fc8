// Where the other programs of librt are.
#pragma once

#include <string>

namespace librt::tools {

/// The program of this name beside this one, or in PATH; empty if there is none.
std::string find_program(const std::string& name);

}  // namespace librt::tools
