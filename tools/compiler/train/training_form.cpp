// Step 3 of adding training entries: a net in training mode.
#include <algorithm>
#include <utility>

#include "tools/compiler/builder.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/quantize/quantize_aware.h"
#include "tools/compiler/train/lora.h"
#include "tools/compiler/train/train_steps.h"

namespace librt::compiler {
namespace {

/// Replaces the nodes that differ in training. Each function returns the results in the training form, or
/// nothing where the node stays.
class TrainingForm {
 public:
  TrainingForm(Training& training, Builder& builder, std::vector<StateUpdate>& updates)
      : training_(training), builder_(builder), updates_(updates) {}

  std::vector<ValueId> replace(const Node& node) {
    if (node.kind() == OpKind::BatchNorm && in_training_mode(builder_.graph(), node)) return batch_norm(node);
    if (node.kind() == OpKind::FakeQuantize)
      return emit_observed(builder_, node, training_.options.range_momentum, updates_);
    if (training_.options.adapter_dropout > 0 && reads_adapter_input(builder_.graph(), node))
      return adapter_with_dropout(node);
    const bool is_random = node.kind() == OpKind::RandomUniform || node.kind() == OpKind::RandomNormal;
    return is_random && node.inputs.size() == 1 ? with_counter(node) : std::vector<ValueId>();
  }

 private:
  /// With the batch's statistics; the running values become states' updates. A layer that is used again
  /// continues from the running values that its previous use updated.
  std::vector<ValueId> batch_norm(const Node& node) {
    const auto& inference = node.as<op::BatchNormAttributes>();
    op::BatchNormTrainAttributes attributes;
    attributes.epsilon = inference.epsilon;
    attributes.momentum = training_.options.batch_norm_momentum.value_or(inference.momentum);
    attributes.unbiased = training_.options.batch_norm_unbiased;
    std::vector<ValueId> inputs = node.inputs;
    const auto update_of = [&](size_t input) {
      return std::find_if(updates_.begin(), updates_.end(),
                          [&](const StateUpdate& update) { return update.state == node.inputs[input]; });
    };
    for (size_t input : {kRunningMean, kRunningVariance})
      if (const auto before = update_of(input); before != updates_.end()) inputs[input] = before->value;
    const std::vector<ValueId> outputs = builder_.emit_many(make_op(attributes), inputs, 5);
    for (size_t input : {kRunningMean, kRunningVariance}) {
      const ValueId state = node.inputs[input], after = outputs[input - kRunningMean + 1];
      if (const auto before = update_of(input); before != updates_.end())
        before->value = after;
      else if (builder_.value(state).role == Role::State)
        updates_.push_back({.state = state, .value = after});
    }
    return {outputs[0]};
  }

  std::vector<ValueId> adapter_with_dropout(const Node& node) {
    Node dropping = node;
    const ValueId x = node.inputs[0], ratio = builder_.scalar_like(training_.options.adapter_dropout, x);
    dropping.inputs[0] =
        emit_dropout(builder_, x, ratio, builder_.shape_of(x), ++dropout_seed_, random_counter()).y;
    return builder_.emit_node(dropping);
  }

  /// Random values that differ from step to step.
  std::vector<ValueId> with_counter(const Node& node) {
    Node counted = node;
    counted.inputs.push_back(random_counter());
    return builder_.emit_node(counted);
  }

  /// A state that counts the steps.
  ValueId random_counter() {
    const TensorInfo info{.dtype = DType::I64, .shape = {}};
    const uint32_t state = training_.states.make("random.counter", info, StateKind::Counter);
    for (ValueId id = 0; id < builder_.graph().values.size(); ++id)
      if (builder_.value(id).role == Role::State && builder_.value(id).state == state) return id;
    const ValueId counter = builder_.state("random.counter", state, info);
    updates_.push_back({.state = counter, .value = builder_.add(counter, builder_.scalar(1, DType::I64))});
    return counter;
  }

  Training& training_;
  Builder& builder_;
  std::vector<StateUpdate>& updates_;
  int64_t dropout_seed_ = 0;
};

}  // namespace

bool in_training_mode(const Graph& graph, const Node& batch_norm) {
  return graph.values[batch_norm.inputs[1]].role == Role::State ||
         graph.values[batch_norm.inputs[2]].role == Role::State;
}

Status make_training_form(Training& training, Graph& graph, std::vector<StateUpdate>& updates) {
  Builder builder(graph, &training.model.states);
  TrainingForm form(training, builder, updates);
  std::vector<ValueId> map;
  RT_TRY(copy_graph(training.infer, builder, map, [&](const Node& node) { return form.replace(node); }));
  for (ValueId id : training.infer.outputs) builder.output(map[id]);
  RT_TRY(Status(builder.status()));
  graph.state_updates = std::move(updates);
  if (training.options.find_attention) RT_TRY(attention(graph, {.states = training.model.states}));
  RT_TRY(write_out_composites(graph, training.model.states));
  updates = std::exchange(graph.state_updates, {});
  return {};
}

}  // namespace librt::compiler
