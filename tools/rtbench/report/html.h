// A study as one HTML file that needs no network: text and tables here, charts by Chart.js from page/.
//
// Knows: what a reader wants to see first. Must not know: how anything was measured.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Code::Unsupported if this rtbench was built without Chart.js.
Result<std::string> study_html(const Study& study);

}  // namespace librt::bench
