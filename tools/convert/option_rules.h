// Which options of rtconvert need or exclude which others, as a table.
#pragma once

#include "tools/convert/options.h"

namespace librt::convert {

/// Throws tools::ArgumentError for the first rule that the options break.
void check_rules(const Options& options);

}  // namespace librt::convert
