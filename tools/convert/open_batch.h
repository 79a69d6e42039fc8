// --open-batch: do the samples of a batch stay independent of each other?
//
// Knows: runs on the CPU with random inputs, comparisons. Must not know: ONNX nodes, options' spelling.
//
// A file that was exported with a batch of 1 may compute with this 1, as in a Reshape to [1, -1, 64]: with a
// dynamic batch it would mix the samples, without an error.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/graph/graph.h"
#include "tools/convert/verify.h"

namespace librt::convert {

/// Runs the entry `infer` of a model that is not optimized yet, whose inputs have the dynamic dimension
/// `batch`, with three random samples at once and with each of them alone. An error if it cannot be run with
/// three, or if the results differ by more than 3e-3 of their norm. Returns why it was not checked, because
/// of its cost or its inputs; empty if it was.
Result<std::string> check_open_batch(const ModelGraph& model, const VerifyOptions& options);

}  // namespace librt::convert
