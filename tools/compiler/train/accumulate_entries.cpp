// Gradient accumulation: the entries `accumulate` and `update`. The accumulators are states; the first
// micro-batch overwrites them.
#include <limits>

#include "tools/compiler/builder.h"
#include "tools/compiler/train/train_steps.h"

namespace librt::compiler {
namespace {

/// The accumulator of a parameter's gradients.
ValueId sum_state(Training& training, Builder& builder, const std::string& parameter,
                  const TensorInfo& info) {
  const std::string name = text(parameter, ".gradient");
  return builder.state(name, training.states.make(name, info, StateKind::Optimizer), info);
}

/// Their number, a state.
ValueId micro_batches(Training& training, Builder& builder) {
  const TensorInfo info{.dtype = DType::I32, .shape = {}};
  return builder.state("micro_batches", training.states.make("micro_batches", info, StateKind::Counter),
                       info);
}

/// Adds a micro-batch's gradients to the accumulators; returns the parameters that have one.
Result<std::vector<Value>> add_accumulate(Training& training) {
  Backward backward;
  RT_TRY(make_backward(training, backward));
  Builder builder(backward.graph, &training.model.states);
  RT_TRY(Status(builder.status()));
  builder.set_scope("accumulate");
  std::vector<StateUpdate> updates = backward.statistics;
  std::vector<Value> accumulated;
  const ValueId count = micro_batches(training, builder), zero = builder.scalar(0, DType::I32);
  const ValueId is_first = builder.emit(op::EqualAttributes{}, {count, zero});
  for (const Gradient& gradient : backward.gradients) {
    const Value parameter = builder.value(gradient.parameter);
    const ValueId sum = sum_state(training, builder, parameter.name, parameter.info());
    const ValueId before = builder.emit(op::WhereAttributes{}, {is_first, builder.scalar_like(0, sum), sum});
    updates.push_back({.state = sum, .value = builder.add(before, gradient.value)});
    accumulated.push_back(backward.graph.values[gradient.parameter]);
  }
  updates.push_back({.state = count, .value = builder.add(count, builder.scalar(1, DType::I32))});
  for (ValueId output : backward.outputs) builder.output(output);
  RT_TRY(Status(builder.status()));
  backward.graph.state_updates = std::move(updates);
  training.add_entry("accumulate", std::move(backward.graph));
  return accumulated;
}

/// One optimizer step with the mean of the accumulated gradients.
Status add_update(Training& training, const std::vector<Value>& accumulated) {
  Graph graph;
  Builder builder(graph, &training.model.states);
  const ValueId learning_rate = builder.input("learning_rate", DType::F32, {});
  const ValueId count = micro_batches(training, builder);
  std::vector<Gradient> gradients;
  for (const Value& parameter : accumulated)
    gradients.push_back({builder.state(parameter.name, parameter.state, parameter.info()),
                         sum_state(training, builder, parameter.name, parameter.info())});
  const ValueId loss_scale = emit_loss_scale(builder, training.options.optimizer.gradients, training.states);
  // Without a micro-batch there is no gradient: stale accumulators are divided by infinity.
  const ValueId any = builder.emit(op::GreaterAttributes{}, {count, builder.scalar(0, DType::I32)});
  const ValueId infinity = builder.scalar(std::numeric_limits<double>::infinity(), DType::F32);
  const ValueId divisor =
      builder.emit(op::WhereAttributes{}, {any, builder.cast(count, DType::F32), infinity});
  std::vector<StateUpdate> updates;
  gradients = sum_over_ranks(training, builder, gradients);
  emit_optimizer(builder, training.options.optimizer, gradients, learning_rate, loss_scale, divisor,
                 training.states, updates);
  updates.push_back({.state = count, .value = builder.scalar(0, DType::I32)});
  const ValueId used = builder.emit(op::IdentityAttributes{}, {count});
  RT_TRY(Status(builder.status()));
  graph.values[used].name = "micro_batches";
  builder.output(used);
  graph.state_updates = std::move(updates);
  training.add_entry("update", std::move(graph));
  return {};
}

}  // namespace

Status add_accumulation(Training& training) {
  RT_ASSIGN(const std::vector<Value> accumulated, add_accumulate(training));
  return add_update(training, accumulated);
}

}  // namespace librt::compiler
