// Step 4 of adding training entries: the loss, the gradients of all trained weights, and their sums over
// ranks.
#include <algorithm>
#include <utility>

#include "tools/compiler/builder.h"
#include "tools/compiler/train/autodiff.h"
#include "tools/compiler/train/train_steps.h"

namespace librt::compiler {
namespace {

/// The loss of a rank, in f32.
struct LossOfRank {
  ValueId loss = kNoValue;  ///< its part of the mean over all ranks
  RankShare share;          ///< with data parallelism
};

Result<LossOfRank> add_loss(Training& training, Builder& builder, ValueId output) {
  builder.set_scope("loss");
  const bool is_parallel = training.options.data_parallel.enabled;
  ValueId weight = kNoValue;
  RT_ASSIGN(ValueId loss, emit_loss(builder, output, training.options.loss,
                                    &training.report.stripped_activation, is_parallel ? &weight : nullptr));
  if (builder.value(loss).dtype != DType::F32) loss = builder.cast(loss, DType::F32);
  RankShare share;
  if (is_parallel) {
    builder.set_scope("ranks");
    share = emit_rank_share(builder, weight);
    loss = builder.mul(loss, share.of_mean);
  }
  return LossOfRank{loss, share};
}

/// Differentiates `scaled` with respect to all parameters.
Result<std::vector<Gradient>> add_gradients(const Training& training, Builder& builder, ValueId scaled) {
  const Graph& graph = builder.graph();
  std::vector<ValueId> parameters;
  for (ValueId id = 0; id < graph.values.size(); ++id)
    if (graph.values[id].role == Role::State &&
        training.states[graph.values[id].state].kind == StateKind::Parameter)
      parameters.push_back(id);
  RT_ASSIGN(const std::vector<ValueId> values,
            differentiate(builder, scaled, parameters, training.options.detached));
  std::vector<Gradient> gradients;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (values[i] != kNoValue) gradients.push_back({parameters[i], values[i]});
  if (gradients.empty()) return invalid_argument("train: the loss depends on no trained weight");
  return gradients;
}

/// Running values are averaged over the ranks, so that they stay the same on all.
void average_statistics(const Training& training, Builder& builder, const RankShare& share,
                        std::vector<StateUpdate>& updates) {
  std::vector<StateUpdate*> running;
  std::vector<ValueId> parts;
  for (StateUpdate& update : updates) {
    if (training.states[builder.value(update.state).state].kind != StateKind::Statistic) continue;
    running.push_back(&update);
    parts.push_back(builder.mul(update.value, share.of_ranks));
  }
  if (parts.empty()) return;
  const std::vector<ValueId> means = emit_sums_over_ranks(builder, parts);
  for (size_t i = 0; i < running.size(); ++i) running[i]->value = means[i];
}

}  // namespace

Status make_backward(Training& training, Backward& backward) {
  Graph& graph = backward.graph;
  RT_TRY(make_training_form(training, graph, backward.statistics));
  training.report.detached =
      static_cast<size_t>(std::count_if(graph.values.begin(), graph.values.end(), [&](const Value& value) {
        return training.options.detached.contains(value.name);
      }));
  const std::vector<ValueId> outputs = std::exchange(graph.outputs, {});
  if (outputs.empty()) return invalid_argument("train: the model has no output");
  Builder builder(graph, &training.model.states);
  RT_TRY(Status(builder.status()));
  RT_ASSIGN(const LossOfRank own, add_loss(training, builder, outputs[0]));
  ValueId loss = own.loss;
  backward.loss_scale = emit_loss_scale(builder, training.options.optimizer.gradients, training.states);
  const ValueId scaled = backward.loss_scale == kNoValue ? loss : builder.mul(loss, backward.loss_scale);
  RT_TRY(Status(builder.status()));
  RT_ASSIGN(backward.gradients, add_gradients(training, builder, scaled));
  if (training.options.data_parallel.enabled) {
    builder.set_scope("ranks");
    loss = emit_sum_over_ranks(builder, loss);
    average_statistics(training, builder, own.share, backward.statistics);
    RT_TRY(Status(builder.status()));
  }
  graph.values[loss].name = "loss";
  backward.outputs = {loss};
  backward.outputs.insert(backward.outputs.end(), outputs.begin(), outputs.end());
  return {};
}

std::vector<Gradient> sum_over_ranks(Training& training, Builder& builder,
                                     const std::vector<Gradient>& gradients) {
  if (!training.options.data_parallel.enabled) return gradients;
  builder.set_scope("ranks");
  std::vector<ValueId> values;
  for (const Gradient& gradient : gradients) values.push_back(gradient.value);
  const bool sharded = training.options.optimizer.shards > 0;
  // The entries share the shards' states, so they must have the same buckets.
  if (training.buckets.empty())
    training.buckets =
        make_buckets(builder.graph(), values, training.options.data_parallel.bucket_bytes, [&](size_t i) {
          return sharded ? group_of(training.options.optimizer, builder.value(gradients[i].parameter).name)
                         : 0;
        });
  std::vector<Gradient> sums;
  for (const std::vector<size_t>& bucket : training.buckets) {
    std::vector<ValueId> parameters, parts;
    for (const size_t i : bucket) {
      parameters.push_back(gradients[i].parameter);
      parts.push_back(gradients[i].value);
    }
    const ValueId sum = emit_sum_over_ranks(builder, emit_flattened(builder, parts));
    if (sharded) {
      sums.push_back({.value = sum, .bucket = parameters});
      continue;
    }
    const std::vector<ValueId> pieces = emit_like(builder, sum, parts);
    for (size_t i = 0; i < pieces.size(); ++i) sums.push_back({parameters[i], pieces[i]});
  }
  return sums;
}

}  // namespace librt::compiler
