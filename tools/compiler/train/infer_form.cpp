// Step 2 of adding training entries: the entry `infer` computes with trained states.
#include <algorithm>
#include <utility>

#include "tools/compiler/builder.h"
#include "tools/compiler/train/train_steps.h"

namespace librt::compiler {
namespace {

/// Data is fed in f32, and a loss reads f32.
void widen_inputs(Training& training) {
  for (const ValueId id : training.infer.inputs) {
    Value& value = training.infer.values[id];
    if (is_narrow(value.dtype)) training.stored_types[value.name] = std::exchange(value.dtype, DType::F32);
  }
}

/// A master weight or widened input in the type that the graph reads it in; all else unchanged.
ValueId as_stored(const Training& training, Builder& builder, ValueId id) {
  if (id == kNoValue || builder.value(id).role == Role::Intermediate) return id;
  const auto stored = training.stored_types.find(builder.value(id).name);
  return stored == training.stored_types.end() ? id : builder.cast(id, stored->second);
}

/// All operands of a batch normalization but x have one type: f32 as soon as one is a state.
void read_masters(const Training& training, Builder& builder, Node& node) {
  if (!is_batch_norm(node)) {
    for (ValueId& input : node.inputs) input = as_stored(training, builder, input);
    return;
  }
  const auto is_state = [&](ValueId id) { return builder.value(id).role == Role::State; };
  if (std::none_of(node.inputs.begin() + 1, node.inputs.end(), is_state)) return;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (is_narrow(builder.value(node.inputs[i]).dtype))
      node.inputs[i] = builder.cast(node.inputs[i], DType::F32);
}

/// Batch normalization exported in training mode computes with its running values; where it also returns new
/// ones, these stay the same. Empty for any other node.
std::vector<ValueId> without_training_mode(Builder& builder, const Node& node) {
  if (node.kind() != OpKind::BatchNormTrain) return {};
  const auto& training = node.as<op::BatchNormTrainAttributes>();
  op::BatchNormAttributes attributes;
  attributes.epsilon = training.epsilon;
  attributes.momentum = training.momentum;
  std::vector<ValueId> outputs = builder.emit_many(make_op(attributes), node.inputs, 1);
  outputs.push_back(node.inputs[kRunningMean]);
  outputs.push_back(node.inputs[kRunningVariance]);
  outputs.resize(node.outputs.size(), outputs[0]);
  return outputs;
}

/// The graph's outputs, in f32 where they were narrower; the Cast takes the name.
Status add_outputs(Graph& graph, Builder& builder, const std::vector<ValueId>& outputs) {
  for (const ValueId id : outputs) {
    ValueId output = id;
    if (is_narrow(builder.value(output).dtype)) {
      output = builder.cast(output, DType::F32);
      RT_TRY(Status(builder.status()));
      graph.values[output].name = std::exchange(graph.values[id].name, "");
    }
    builder.output(output);
  }
  return builder.status();
}

}  // namespace

Status make_infer(Training& training) {
  widen_inputs(training);
  Graph graph;
  Builder builder(graph, &training.model.states);
  std::vector<ValueId> map;
  RT_TRY(copy_graph(training.infer, builder, map, [&](Node node) -> std::vector<ValueId> {
    if (!training.stored_types.empty()) read_masters(training, builder, node);
    std::vector<ValueId> outputs = without_training_mode(builder, node);
    return outputs.empty() ? builder.emit_node(node) : outputs;
  }));
  std::vector<ValueId> outputs;
  for (const ValueId id : training.infer.outputs) outputs.push_back(map[id]);
  RT_TRY(add_outputs(graph, builder, outputs));
  training.infer = std::move(graph);
  return {};
}

}  // namespace librt::compiler
