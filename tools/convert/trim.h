// What a build of librt needs for some models: the file that -DRT_TRIM takes (cmake/Trim.cmake).
//
// Knows: nodes, types and attributes of graphs. Must not know: how the build leaves the rest out.
#pragma once

#include <span>
#include <string>

#include "tools/convert/conversion.h"

namespace librt::convert {

/// Writes the operators, element types and activations of the compiled models, in all entries and bodies, as
/// a JSON object, and what sessions add to them. made: its json and text.
Status write_trim(std::span<const std::string> models, const std::string& path, Conversion& made);

}  // namespace librt::convert
