// What the metadata that rtconvert --train wrote says about a model.
//
// Knows: keys and their meaning. Must not know: the command line, data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/rttrain/loop_options.h"

namespace rt::train {

/// The inputs of train_step that come from data.
std::vector<rt::TensorSpec> data_inputs(const rt::Model& model);
/// Interpretation of outputs and labels for the metrics.
rt::Status read_scoring(const rt::Model& model, Scoring& scoring);
/// Extent of the first output's class axis if the labels are classes; 0 if unknown.
int64_t class_count(const rt::Model& model, const std::vector<rt::TensorSpec>& inputs,
                    const Scoring& scoring);
/// The number of parts of --shard-optimizer (0: not sharded), if it fits the number of ranks. name: of the
/// model, for messages.
rt::Result<int64_t> shards_of(const rt::Model& model, const std::string& name, size_t ranks);

/// Why gradients cannot be summed in an order that does not depend on the number of ranks; empty if they can.
std::string order_problem(const rt::Model& model, size_t micro_batch);

/// A usual learning rate of an optimizer: those of PyTorch, or of the paper.
std::optional<float> default_learning_rate(const std::string& optimizer);

}  // namespace rt::train
