// The steps of a conversion, from an imported graph to a written and verified file.
//
// Knows: their order, and what each leaves in the summary. Must not know: how anything is shown.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"
#include "tools/convert/options.h"
#include "tools/convert/summary.h"

namespace librt::convert {

/// Rewrites the model as the options say, writes it to options.output, or else to `bytes`, and verifies it on
/// request.
Status compile(const Options& options, ModelGraph& model, Summary& summary, std::vector<std::byte>& bytes);

}  // namespace librt::convert
