// The steps of a conversion, from an imported graph to a written and verified file.
//
// Knows: their order, and what each leaves in the summary. Must not know: how anything is shown, but that
// progress goes to stderr.
#pragma once

#include "runtime/graph/graph.h"
#include "tools/rtconvert/options.h"
#include "tools/rtconvert/summary.h"

namespace librt::convert {

/// Rewrites the model as the options say, writes it to options.output, if there is one, and verifies it on
/// request.
Status compile(const Options& options, ModelGraph& model, Summary& summary);

}  // namespace librt::convert
