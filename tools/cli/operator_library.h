// Operators of the application for the programs: shared libraries with kernels (rt/custom.h).
//
// Knows: how they are loaded and asked. Must not know: sessions, models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rt/custom.h"

namespace librt::tools {

/// Help of the option --operators.
inline constexpr const char* kOperatorsHelp =
    "LIBRARY: shared library with kernels for operators of the application, which a model has that was "
    "converted with --custom-domain (rt/custom.h says what it exports)";

/// Appends the operators of each library, which stays loaded until the process ends. Returns what is wrong;
/// empty: nothing.
std::string add_operators(std::span<const std::string> libraries, std::vector<rt_custom_operator>& operators);

}  // namespace librt::tools
