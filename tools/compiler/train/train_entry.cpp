#include "tools/compiler/train/train_entry.h"

#include "tools/compiler/builder.h"
#include "tools/compiler/edit/control.h"
#include "tools/compiler/edit/weight_layouts.h"
#include "tools/compiler/train/train_steps.h"

namespace librt::compiler {
namespace {

/// Forward and backward pass, sums over ranks, optimizer, and the next values of all states. A step that the
/// loss scaling skips leaves every state as it is.
Status add_train_step(Training& training) {
  Backward backward;
  RT_TRY(make_backward(training, backward));
  Builder builder(backward.graph, &training.model.states);
  RT_TRY(Status(builder.status()));
  const ValueId learning_rate = builder.input("learning_rate", DType::F32, {});
  std::vector<StateUpdate> updates;
  const std::vector<Gradient> gradients = sum_over_ranks(training, builder, backward.gradients);
  const ValueId skip = emit_optimizer(builder, training.options.optimizer, gradients, learning_rate,
                                      backward.loss_scale, kNoValue, training.states, updates);
  for (StateUpdate update : backward.statistics) {
    if (skip != kNoValue)
      update.value = builder.emit(op::WhereAttributes{}, {skip, update.state, update.value});
    updates.push_back(update);
    training.report.batch_states.push_back(builder.value(update.state).name);
  }
  for (ValueId output : backward.outputs) builder.output(output);
  RT_TRY(Status(builder.status()));
  backward.graph.state_updates = std::move(updates);
  training.add_entry("train_step", std::move(backward.graph));
  return {};
}

/// `infer` with the moving averages of the weights.
void add_averaged_infer(Training& training) {
  Graph graph = *training.model.entry("infer");
  for (Value& value : graph.values) {
    if (value.role != Role::State || training.states[value.state].kind != StateKind::Parameter) continue;
    const std::string name = average_name(value.name);
    for (uint32_t i = 0; i < training.model.states.size(); ++i)
      if (training.model.states[i].name == name) value.state = i;
  }
  training.add_entry("infer_ema", std::move(graph));
}

Status add_entries(ModelGraph& model, const TrainOptions& options, TrainReport& report) {
  if (options.optimizer.shards > 0 && options.optimizer.optimizer.optimizer == Optimizer::Lamb)
    return unsupported(
        "train: lamb needs the norms of whole weights, so its state cannot be sharded; use another "
        "optimizer");
  Graph& infer = *model.entry("infer");
  RT_TRY(write_out_control(infer, model.states));
  unify_layouts(infer);
  Training training{.model = model,
                    .options = options,
                    .report = report,
                    .infer = infer,
                    .states = StateTable(model.states),
                    .stored_types = {},
                    .buckets = {}};
  RT_TRY(choose_states(training));
  RT_TRY(make_infer(training));
  RT_TRY(add_train_step(training));
  if (options.accumulate) RT_TRY(add_accumulation(training));
  if (options.optimizer.average_decay) add_averaged_infer(training);
  return {};
}

}  // namespace

void Training::add_entry(const char* name, Graph graph) {
  graph.name = name;
  model.entries.push_back({.name = name, .graph = std::move(graph)});
}

Status add_train_entry(ModelGraph& model, const TrainOptions& options, TrainReport* report) {
  if (model.entry("infer") == nullptr) return invalid_argument("train: the model has no entry 'infer'");
  if (model.entry("train_step") != nullptr)
    return invalid_argument(
        "train: the model already has an entry 'train_step'; compile it again from its source");
  ModelGraph changed = model;
  changed.entries.reserve(changed.entries.size() + 4);  // infer stays where it is
  TrainReport local;
  RT_TRY(add_entries(changed, options, local));
  model = std::move(changed);
  if (report != nullptr) *report = std::move(local);
  return {};
}

}  // namespace librt::compiler
