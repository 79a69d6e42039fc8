// Text for people: what words.h has, and text from files.
#pragma once

#include "tools/cli/terminal.h"
#include "tools/rtbench/words.h"

namespace librt::bench {

using tools::printable;
using words::bytes_text;
using words::columns;
using words::format;
using words::mode_text;
using words::number_text;
using words::time_text;

}  // namespace librt::bench
