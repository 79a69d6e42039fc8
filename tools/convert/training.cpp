#include "tools/convert/training.h"

#include <algorithm>

#include "runtime/model/checkpoint.h"
#include "runtime/model/reader.h"
#include "tools/compiler/name_list.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/optimizers.h"
#include "tools/data/peft.h"
#include "tools/data/safetensors.h"
#include "tools/onnx/export.h"
#include "tools/onnx/import.h"

namespace librt::convert {

Status add_training(ModelGraph& model, const Options& options, compiler::TrainReport& report) {
  compiler::TrainOptions training = options.training;
  const auto& disabled = options.disabled_passes;
  training.find_attention = std::find(disabled.begin(), disabled.end(), "attention") == disabled.end();
  RT_TRY(compiler::add_train_entry(model, training, &report));
  model.metadata.emplace_back("train.loss", options.loss);
  model.metadata.emplace_back("train.optimizer", options.optimizer);
  // Metadata that rttrain's metrics need about outputs and labels.
  const compiler::LossOptions& loss = options.training.loss;
  if (report.stripped_activation) model.metadata.emplace_back("train.output", "probabilities");
  model.metadata.emplace_back("train.class_axis", std::to_string(loss.class_axis));
  if (loss.loss == compiler::Loss::Ctc)
    model.metadata.emplace_back("train.blank", std::to_string(loss.blank));
  if (loss.ignore_index)
    model.metadata.emplace_back("train.ignore_index", std::to_string(*loss.ignore_index));
  if (options.training.data_parallel.enabled)  // over how many ranks; 0: any number
    model.metadata.emplace_back("train.ranks", text(options.training.optimizer.shards));
  if (options.training.accumulate) {  // what depends on the order of the micro-batches
    std::string states;
    for (const std::string& name : report.batch_states) append(states, states.empty() ? "" : ", ", name);
    model.metadata.emplace_back("train.batch_states", states);
  }
  return {};
}

std::string training_text(const compiler::TrainReport& report) {
  std::string out = text("training    ", report.trained.size(), " weights of ",
                         grouped(static_cast<uint64_t>(report.trained_elements)), " elements, ",
                         report.frozen.size(), " frozen");
  if (!report.frozen_buffers.empty())
    append(out, ", ", report.frozen_buffers.size(),
           " of them buffers and constants of the framework's model (",
           compiler::listed(report.frozen_buffers, 4), ")");
  if (!report.single.empty()) {
    append(out, "; not trained: ", compiler::listed(report.single, 4),
           ", single values that may be constants of formulas (--trainable '*,", report.single.front(),
           "' trains one)");
  }
  if (report.detached > 0) append(out, "; ", report.detached, " detached values stop the gradient");
  if (report.stripped_activation) append(out, "; the loss takes the input of the final activation");
  return out;
}

std::string adapter_text(const compiler::LoraReport& report) {
  std::string out = text("adapters    ", report.adapted.size(), " weights, ",
                         grouped(static_cast<uint64_t>(report.elements)), " elements");
  for (const auto& [name, reason] : report.skipped) append(out, text("; left out: '", name, "': ", reason));
  return out;
}

namespace {

bool is_weight(const State& state) {
  return state.kind == StateKind::Parameter || state.kind == StateKind::Statistic;
}

/// Sets the model's states to the checkpoint's values.
Status set_states(ModelGraph& model, const Checkpoint& checkpoint, const std::string& path) {
  if (model.states.empty() && !checkpoint.tensors.empty())
    return invalid_argument(path,
                            ": expected a model with states to restore, found one without; convert the model "
                            "that was trained");
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
  return {};
}

/// The file options.checkpoint; with options.use_ema, parameters have their moving averages.
Result<Checkpoint> read_trained(const Options& options) {
  RT_ASSIGN(Checkpoint checkpoint, read_checkpoint(options.checkpoint));
  if (!options.use_ema) return checkpoint;
  size_t averages = 0;
  for (State& state : checkpoint.tensors) {
    if (state.kind != StateKind::Parameter) continue;
    const State* const average = checkpoint.tensor(compiler::average_name(state.name));
    if (average == nullptr || average->info != state.info) continue;  // of a weight that was not trained
    state.initial = average->initial;
    ++averages;
  }
  if (averages == 0)
    return invalid_argument(
        options.checkpoint,
        ": --use-ema: expected moving averages of the weights, found none; the training is "
        "converted with --train --ema DECAY");
  return checkpoint;
}

/// A checkpoint file or, by its name, a safetensors file, also one of PEFT. weights: names of the model's.
Result<Checkpoint> read_weights(const std::string& path, const std::vector<std::string>& weights) {
  if (!tools::is_safetensors(path)) return read_checkpoint(path);
  RT_ASSIGN(tools::Safetensors content, tools::read_safetensors(path));
  if (tools::is_peft(content)) {
    RT_ASSIGN(content, tools::from_peft(content, path, weights));
  }
  Checkpoint checkpoint;
  checkpoint.metadata = std::move(content.metadata);
  for (tools::Array& array : content.arrays) {
    if (array.dims.size() > kMaxRank)
      return unsupported(path, ": tensor '", array.name, "' has rank ", array.dims.size(), ", at most ",
                         kMaxRank, " dimensions are supported");
    State state{.name = array.name,
                .info = {.dtype = array.type, .shape = Shape(std::span<const int64_t>(array.dims))}};
    state.initial = Blob::own(std::move(array.bytes));
    checkpoint.tensors.push_back(std::move(state));
  }
  return checkpoint;
}

Status write_weights(const std::string& path, const Checkpoint& checkpoint) {
  if (!tools::is_safetensors(path)) return write_checkpoint(path, checkpoint);
  tools::Safetensors content;
  content.metadata = checkpoint.metadata;
  for (const State& state : checkpoint.tensors) {
    const auto dims = state.info.shape.dims();
    tools::Array array{
        .name = state.name, .type = state.info.dtype, .dims = {dims.begin(), dims.end()}, .bytes = {}};
    array.bytes.assign(state.initial.data, state.initial.data + state.initial.size);
    content.arrays.push_back(std::move(array));
  }
  return tools::is_peft_path(path) ? tools::write_peft(path, content)
                                   : tools::write_safetensors(path, content);
}

}  // namespace

Status apply_checkpoint(ModelGraph& model, const Options& options) {
  const std::string& path = options.checkpoint;
  RT_ASSIGN(const Checkpoint checkpoint, read_trained(options));
  RT_TRY(set_states(model, checkpoint, path));
  std::erase_if(model.entries, [&](const auto& entry) {
    return !entry.graph.state_updates.empty() || (options.use_ema && entry.name == "infer_ema");
  });
  if (model.entries.empty()) return invalid_argument(path, ": the model has no entry for inference");
  std::erase_if(model.metadata, [](const auto& pair) { return pair.first.starts_with("train."); });
  return compiler::freeze_states(model);
}

Result<std::vector<compiler::MergedWeight>> apply_adapter(ModelGraph& model, const std::string& path) {
  std::vector<std::string> weights;
  for (const ModelGraph::Entry& entry : model.entries)
    for (const Value& value : entry.graph.values)
      if (value.role == Role::Constant && !value.name.empty()) weights.push_back(value.name);
  RT_ASSIGN(const Checkpoint adapter, read_weights(path, weights));
  auto merged = compiler::merge_adapter(model, adapter.tensors);
  if (!merged.ok()) return std::move(merged).status().in(path);
  return merged;
}

Result<size_t> save_adapter(const Options& options) {
  RT_ASSIGN(ModelGraph model, load_model(options.input));
  RT_ASSIGN(Checkpoint checkpoint, read_trained(options));
  RT_TRY(set_states(model, checkpoint, options.checkpoint));
  std::erase_if(checkpoint.tensors, [](const State& state) { return !is_weight(state); });
  // The progress of the training run is not part of the trained weights.
  std::erase_if(checkpoint.metadata, [](const auto& pair) { return pair.first.starts_with("rttrain."); });
  checkpoint.opaque.clear();
  if (checkpoint.tensors.empty())
    return invalid_argument(options.input,
                            ": the model has no parameters as states; compile it with --train");
  RT_TRY(write_weights(options.save_adapter, checkpoint));
  return checkpoint.tensors.size();
}

Result<onnx::ExportedWeights> export_trained(const Options& options) {
  const auto write = [&](const std::vector<State>& weights) -> Result<onnx::ExportedWeights> {
    if (!options.export_onnx.empty())
      return onnx::export_weights(options.input, weights, options.export_onnx, options.tie,
                                  options.external_data);
    return onnx::export_safetensors(options.input, weights, options.export_safetensors, options.tie);
  };
  if (options.merge_adapter.empty() && options.checkpoint.empty()) return write({});
  if (options.merge_adapter.empty()) {
    RT_ASSIGN(const Checkpoint checkpoint, read_trained(options));
    return write(checkpoint.tensors);
  }
  onnx::ImportReport report;
  RT_ASSIGN(ModelGraph model, onnx::import_onnx(options.input, {.untie = true, .tie = options.tie}, report));
  RT_ASSIGN(const std::vector<compiler::MergedWeight> merged, apply_adapter(model, options.merge_adapter));
  std::vector<State> weights;
  for (const compiler::MergedWeight& each : merged) {
    if (each.is_shared)
      return unsupported(
          "weight '", each.weight.name,
          "' is also read by operators that have no adapter, and ONNX would need a second one; "
          "leave it out of the targets, or merge into a .rt");
    weights.push_back(each.weight);
  }
  return write(weights);
}

}  // namespace librt::convert
