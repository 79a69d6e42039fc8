// rtconvert's training options: adding train_step, and putting trained weights into a model.
//
// Knows: options and the compiler's training entry. Must not know: how gradients are derived.
#pragma once

#include "tools/compiler/train/train_entry.h"
#include "tools/convert/options.h"
#include "tools/onnx/export.h"

namespace librt::convert {

/// Adds train_step as the options say; the model must not be optimized yet.
Status add_training(ModelGraph& model, const Options& options, compiler::TrainReport& report);
/// "training    12 weights of 61,706 elements; ..."
std::string training_text(const compiler::TrainReport& report);

/// Replaces the weights by those of options.checkpoint and drops train_step, so that the optimizer can fold
/// them.
Status apply_checkpoint(ModelGraph& model, const Options& options);

/// "adapters    35 weights, 26,624 elements; left out: 'w': it is empty"
std::string adapter_text(const compiler::LoraReport& report);

/// Adds the adapter of a file to the weights; the model must not be optimized yet.
Result<std::vector<compiler::MergedWeight>> apply_adapter(ModelGraph& model, const std::string& path);

/// Writes the parameters and statistics of options.checkpoint, which must be those of the model
/// options.input, to options.save_adapter; returns the number of tensors.
Result<size_t> save_adapter(const Options& options);

/// Writes options.input, an ONNX file, with the weights of options.checkpoint or with options.merge_adapter
/// added to options.export_onnx; or its weights to options.export_safetensors.
Result<onnx::ExportedWeights> export_trained(const Options& options);

}  // namespace librt::convert
