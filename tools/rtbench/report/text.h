// Text for people: what words.h has, and text from files.
#pragma once

#include <string>
#include <string_view>

#include "tools/rtbench/words.h"

namespace librt::bench {

using words::bytes_text;
using words::columns;
using words::format;
using words::mode_text;
using words::number_text;
using words::time_text;

/// Text from a file for a terminal: control characters, which could move the cursor, become '?'.
std::string printable(std::string_view text);
}  // namespace librt::bench
