#include "tools/rtconvert/training.h"

#include <algorithm>

#include "runtime/model/checkpoint.h"
#include "tools/compiler/pipeline.h"
#include "tools/rtconvert/onnx/export.h"

namespace rt::convert {

Status add_training(ModelGraph& model, const Options& options, compiler::TrainReport& report) {
  RT_TRY(compiler::add_train_entry(model, options.training, &report));
  model.metadata.emplace_back("train.loss", options.loss);
  model.metadata.emplace_back("train.optimizer", options.optimizer);
  // What rttrain's metrics must know of outputs and labels.
  const compiler::LossOptions& loss = options.training.loss;
  if (report.stripped_activation) model.metadata.emplace_back("train.output", "probabilities");
  model.metadata.emplace_back("train.class_axis", std::to_string(loss.class_axis));
  if (loss.ignore_index)
    model.metadata.emplace_back("train.ignore_index", std::to_string(*loss.ignore_index));
  return {};
}

std::string training_text(const compiler::TrainReport& report) {
  std::string out = text("training    ", report.trained.size(), " weights of ",
                         grouped(static_cast<uint64_t>(report.trained_elements)), " elements, ",
                         report.frozen.size(), " frozen");
  if (report.stripped_activation) append(out, "; the loss takes the input of the final activation");
  return out;
}

Status apply_checkpoint(ModelGraph& model, const std::string& path) {
  RT_ASSIGN(const Checkpoint checkpoint, read_checkpoint(path));
  std::string missing;
  for (State& state : model.states) {
    const State* saved = checkpoint.tensor(state.name);
    if (saved == nullptr) {
      append(missing, text(missing.empty() ? "" : ", ", state.name));
      continue;
    }
    if (!(saved->info == state.info))
      return invalid_argument(path, ": state '", state.name, "' is ", saved->info, ", the model's is ",
                              state.info, "; use the checkpoint of this model");
    state.initial = saved->initial;
  }
  if (!missing.empty())
    return invalid_argument(path, ": has no state ", missing, "; use the checkpoint of this model");
  std::erase_if(model.entries, [](const auto& entry) { return !entry.graph.state_updates.empty(); });
  if (model.entries.empty()) return invalid_argument(path, ": the model has no entry for inference");
  std::erase_if(model.metadata, [](const auto& pair) { return pair.first.starts_with("train."); });
  return compiler::freeze_states(model);
}

Result<size_t> export_trained(const Options& options) {
  RT_ASSIGN(const Checkpoint checkpoint, read_checkpoint(options.checkpoint));
  return onnx::export_weights(options.input, checkpoint.tensors, options.export_onnx);
}

}  // namespace rt::convert
