// A study as plain text on a terminal: what disturbs first, the verdict, then the figures.
#pragma once

#include <string>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

std::string study_text(const Study& study);

}  // namespace librt::bench
