// rtconvert's training options: adding train_step, and putting trained weights into a model.
//
// Knows: options and the compiler's training entry. Must not know: how gradients are derived.
#pragma once

#include "tools/compiler/train_entry.h"
#include "tools/rtconvert/options.h"

namespace rt::convert {

/// Adds train_step as the options say; the model must not be optimized yet.
Status add_training(ModelGraph& model, const Options& options, compiler::TrainReport& report);
/// "training    12 weights of 61,706 elements; ..."
std::string training_text(const compiler::TrainReport& report);

/// Replaces the weights by those of a checkpoint and drops train_step, so that the optimizer can fold them.
Status apply_checkpoint(ModelGraph& model, const std::string& path);

/// Writes options.input, an ONNX file, with the weights of options.checkpoint to options.export_onnx; how
/// many weights.
Result<size_t> export_trained(const Options& options);

}  // namespace rt::convert
