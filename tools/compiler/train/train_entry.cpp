#include "tools/compiler/train/train_entry.h"

#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "runtime/core/convert_floats.h"
#include "runtime/ops/page.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/edit/control.h"
#include "tools/compiler/edit/weight_layouts.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/quantize/quantize_aware.h"
#include "tools/compiler/train/autodiff.h"
#include "tools/compiler/train/lora.h"
#include "tools/compiler/train/training_graph.h"

namespace librt::compiler {
namespace {

// Operands of batch normalization that hold running values, which become statistics and not weights.
constexpr size_t kRunningMean = 3;
constexpr size_t kRunningVariance = 4;

bool is_batch_norm(const Node& node) {
  return node.kind() == OpKind::BatchNorm || node.kind() == OpKind::BatchNormTrain;
}

class TrainEntry {
 public:
  TrainEntry(ModelGraph& model, const TrainOptions& options, TrainReport& report)
      : model_(model),
        options_(options),
        report_(report),
        infer_(*model.entry("infer")),
        states_(model.states) {}

  Status run() {
    if (options_.optimizer.shards > 0 && options_.optimizer.optimizer.optimizer == Optimizer::Lamb)
      return unsupported(
          "train: lamb needs the norms of whole weights, so its state cannot be sharded; use another "
          "optimizer");
    RT_TRY(write_out_control(infer_, model_.states));
    unify_layouts(infer_);
    RT_TRY(choose_states());
    RT_TRY(check_groups());
    RT_TRY(make_infer());
    RT_TRY(make_train_step());
    if (options_.accumulate) {
      RT_TRY(make_accumulate());
      RT_TRY(make_update());
    }
    if (options_.optimizer.average_decay) make_averaged_infer();
    return {};
  }

 private:
  static bool is_match(const std::string& pattern, const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  }
  bool matches(const std::string& name) const {
    if (options_.trainable.empty()) return !has_adapters_;
    return std::any_of(options_.trainable.begin(), options_.trainable.end(),
                       [&](const std::string& pattern) { return is_match(pattern, name); });
  }

  Status check_groups() const {
    for (const ParameterGroup& group : options_.optimizer.groups)
      if (std::none_of(report_.trained.begin(), report_.trained.end(),
                       [&](const std::string& name) { return is_match(group.pattern, name); }))
        return invalid_argument("train: the group '", group.pattern,
                                "' matches no trained weight; these are ", joined(report_.trained));
    return {};
  }

  // Turns weights into State values of the infer graph. A weight is a named float constant that some operator
  // computes with and that determines no shape; a single element only where it is a bias or the like, as it
  // may also be a constant of a formula. Frozen ones stay constants. Parameters that are states already
  // (adapters) are trained too.
  Status choose_states() {
    std::vector<bool> running(infer_.values.size()), statistic_only(infer_.values.size(), true);
    std::vector<bool> operand_of_layer(infer_.values.size());
    const auto producer = producers(infer_);
    const std::vector<bool> decides_shape = find_shape_operands();
    for (const Node& node : infer_.nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        // Reading a weight's shape does not read the weight.
        if (node.inputs[i] == kNoValue || node.kind() == OpKind::Shape) continue;
        if (is_batch_norm(node) && (i == kRunningMean || i == kRunningVariance))
          running[node.inputs[i]] = true;
        else
          statistic_only[node.inputs[i]] = false;
        if (is_layer_operand(node, i, producer)) operand_of_layer[node.inputs[i]] = true;
      }
    for (const Value& value : infer_.values)
      if (value.role == Role::State && states_[value.state].kind == StateKind::Parameter)
        add_trained(value), has_adapters_ = true;
    std::vector<std::string> refused;
    for (ValueId id = 0; id < infer_.values.size(); ++id) {
      Value& value = infer_.values[id];
      if (value.role != Role::Constant || !is_float(value.dtype) || value.name.empty()) continue;
      if (value.info().elements() < 2 && !running[id] && !operand_of_layer[id]) continue;
      if (running[id] && statistic_only[id]) continue;  // follows its batch normalization
      if (statistic_only[id]) continue;                 // nothing reads it
      // Resize's scales; a weight may determine a shape through data, but is larger.
      if (decides_shape[id] && value.info().elements() <= 2 * kMaxRank) continue;
      const bool is_wanted = matches(value.name);
      if (!is_wanted || !is_exchangeable(value.dtype)) {
        report_.frozen.push_back(value.name);
        if (is_wanted && !options_.trainable.empty())
          refused.push_back(text(value.name, " (", name_of(value.dtype), ")"));
        continue;
      }
      add_trained(value);
      to_state(value, StateKind::Parameter);
    }
    if (!refused.empty())
      return unsupported("train: only f32, f16 and bf16 weights can be trained whole, not ", joined(refused),
                         "; adapters (lora) can be trained on top of them");
    if (report_.trained.empty())
      return invalid_argument(
          "train: no f32, f16 or bf16 weight matches the trainable patterns; the weights are ",
          joined(report_.frozen));
    // Running values of batch normalizations whose scale or bias is trained are updated; the others stay
    // frozen.
    for (const Node& node : infer_.nodes)
      if (is_batch_norm(node) && in_training_mode(infer_, node))
        for (size_t input : {kRunningMean, kRunningVariance}) {
          Value& value = infer_.values[node.inputs[input]];
          if (value.role == Role::Constant) to_state(value, StateKind::Statistic);
        }
    return {};
  }

  // Weight, scale or bias of a layer; the bias of a linear layer is what is added to the MatMul's result.
  bool is_layer_operand(const Node& node, size_t input,
                        const std::vector<std::optional<NodeId>>& producer) const {
    if (node.kind() == OpKind::Conv || node.kind() == OpKind::ConvTranspose || is_batch_norm(node))
      return input > 0;
    if (node.kind() != OpKind::Add) return false;
    const ValueId other = node.inputs[1 - input];
    return producer[other] && infer_.nodes[*producer[other]].kind() == OpKind::MatMul;
  }

  void add_trained(const Value& value) {
    report_.trained.push_back(value.name);
    report_.trained_elements += value.info().elements();
  }

  // Values that determine a shape, or are used to compute one.
  std::vector<bool> find_shape_operands() const {
    std::vector<bool> found(infer_.values.size());
    for (auto node = infer_.nodes.rbegin(); node != infer_.nodes.rend(); ++node) {
      const uint32_t operands = ops::page_of(node->kind())->shape_operands;
      const bool leads_to_shape =
          node->kind() != OpKind::Shape &&
          std::any_of(node->outputs.begin(), node->outputs.end(),
                      [&](ValueId output) { return output != kNoValue && found[output]; });
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->inputs[i] != kNoValue && (leads_to_shape || (i < 32 && (operands >> i & 1u) != 0)))
          found[node->inputs[i]] = true;
    }
    return found;
  }

  static bool in_training_mode(const Graph& graph, const Node& node) {
    return graph.values[node.inputs[1]].role == Role::State ||
           graph.values[node.inputs[2]].role == Role::State;
  }

  static bool is_narrow(DType dtype) { return is_exchangeable(dtype) && dtype != DType::F32; }

  // A 16-bit weight becomes an f32 state, its master weight: most updates are smaller than a 16-bit step.
  void to_state(Value& value, StateKind kind) {
    const DType stored = value.dtype;
    if (is_narrow(stored)) {
      std::vector<std::byte> wide(static_cast<size_t>(value.info().elements()) * sizeof(float));
      convert_floats(value.data.data, stored, wide.data(), DType::F32, value.info().elements());
      value.data = Blob::own(std::move(wide));
      value.dtype = DType::F32;
    }
    value.role = Role::State;
    value.state = states_.make(value.name, value.info(), kind, value.data);
    value.data = {};
    if (is_narrow(stored)) stored_types_[value.name] = stored;
  }

  // Data is fed in f32, and a loss reads f32.
  void widen_inputs() {
    for (const ValueId id : infer_.inputs) {
      Value& value = infer_.values[id];
      if (is_narrow(value.dtype)) stored_types_[value.name] = std::exchange(value.dtype, DType::F32);
    }
  }

  /// A master weight or widened input in the type that the graph reads it in; all else unchanged.
  ValueId as_stored(Builder& builder, ValueId id) const {
    if (id == kNoValue || builder.value(id).role == Role::Intermediate) return id;
    const auto stored = stored_types_.find(builder.value(id).name);
    return stored == stored_types_.end() ? id : builder.cast(id, stored->second);
  }

  // All operands of a batch normalization but x have one type: f32 as soon as one is a state.
  void read_masters(Builder& builder, Node& node) const {
    if (!is_batch_norm(node)) {
      for (ValueId& input : node.inputs) input = as_stored(builder, input);
      return;
    }
    const auto is_state = [&](ValueId id) { return builder.value(id).role == Role::State; };
    if (std::none_of(node.inputs.begin() + 1, node.inputs.end(), is_state)) return;
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (is_narrow(builder.value(node.inputs[i]).dtype))
        node.inputs[i] = builder.cast(node.inputs[i], DType::F32);
  }

  static std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) append(all, text(all.empty() ? "" : ", ", name));
    return all.empty() ? "none" : all;
  }

  // Batch normalization exported in training mode computes with its running values in `infer`. Inputs and
  // outputs of a 16-bit model are f32.
  Status make_infer() {
    widen_inputs();
    Graph graph;
    Builder builder(graph, &model_.states);
    std::vector<ValueId> map;
    RT_TRY(copy_graph(infer_, builder, map, [&](Node node) -> std::vector<ValueId> {
      if (!stored_types_.empty()) read_masters(builder, node);
      if (node.kind() != OpKind::BatchNormTrain) return builder.emit_node(node);
      op::BatchNormAttributes attributes;
      attributes.epsilon = node.as<op::BatchNormTrainAttributes>().epsilon;
      std::vector<ValueId> outputs = builder.emit_many(make_op(attributes), node.inputs, 1);
      outputs.push_back(node.inputs[kRunningMean]);
      outputs.push_back(node.inputs[kRunningVariance]);
      outputs.resize(node.outputs.size(), outputs[0]);
      return outputs;
    }));
    for (ValueId id : infer_.outputs) {
      ValueId output = map[id];
      if (is_narrow(builder.value(output).dtype)) {
        output = builder.cast(output, DType::F32);
        RT_TRY(Status(builder.status()));
        graph.values[output].name = std::exchange(graph.values[map[id]].name, "");
      }
      builder.output(output);
    }
    RT_TRY(Status(builder.status()));
    infer_ = std::move(graph);
    return {};
  }

  /// A graph with loss and gradients, before the optimizer.
  struct Backward {
    Graph graph;
    std::vector<StateUpdate> statistics;  ///< running values, counters of random numbers
    std::vector<ValueId> outputs;         ///< the loss, then those of infer
    std::vector<Gradient> gradients;
    ValueId loss_scale = kNoValue;
  };

  // The net in training mode, with composites that have no gradient rule inlined.
  Status make_training_form(Graph& graph, std::vector<StateUpdate>& updates) {
    Builder builder(graph, &model_.states);
    dropout_seed_ = 0;
    std::vector<ValueId> map;
    RT_TRY(copy_graph(infer_, builder, map,
                      [&](const Node& node) { return training_form(builder, node, updates); }));
    for (ValueId id : infer_.outputs) builder.output(map[id]);
    RT_TRY(Status(builder.status()));
    graph.state_updates = std::move(updates);
    if (options_.find_attention) RT_TRY(attention(graph, {.states = model_.states}));
    RT_TRY(write_out_composites(graph, model_.states));
    updates = std::exchange(graph.state_updates, {});
    return {};
  }

  Status make_backward(Backward& backward) {
    Graph& graph = backward.graph;
    RT_TRY(make_training_form(graph, backward.statistics));
    const std::vector<ValueId> outputs = std::exchange(graph.outputs, {});
    if (outputs.empty()) return invalid_argument("train: the model has no output");
    Builder builder(graph, &model_.states);
    RT_TRY(Status(builder.status()));
    builder.set_scope("loss");
    const bool parallel = options_.data_parallel.enabled;
    ValueId weight = kNoValue;
    RT_ASSIGN(ValueId loss, emit_loss(builder, outputs[0], options_.loss, &report_.stripped_activation,
                                      parallel ? &weight : nullptr));
    if (builder.value(loss).dtype != DType::F32) loss = builder.cast(loss, DType::F32);
    RankShare share;
    if (parallel) {
      builder.set_scope("ranks");
      share = emit_rank_share(builder, weight);
      loss = builder.mul(loss, share.of_mean);
    }
    backward.loss_scale = emit_loss_scale(builder, options_.optimizer.gradients, states_);
    const ValueId scaled = backward.loss_scale == kNoValue ? loss : builder.mul(loss, backward.loss_scale);
    RT_TRY(Status(builder.status()));

    std::vector<ValueId> parameters;
    for (ValueId id = 0; id < graph.values.size(); ++id)
      if (graph.values[id].role == Role::State &&
          states_[graph.values[id].state].kind == StateKind::Parameter)
        parameters.push_back(id);
    RT_ASSIGN(const std::vector<ValueId> gradients, differentiate(builder, scaled, parameters));
    for (size_t i = 0; i < parameters.size(); ++i)
      if (gradients[i] != kNoValue) backward.gradients.push_back({parameters[i], gradients[i]});
    if (backward.gradients.empty()) return invalid_argument("train: the loss depends on no trained weight");
    if (parallel) {
      builder.set_scope("ranks");
      loss = emit_sum_over_ranks(builder, loss);
      average_statistics(builder, share, backward.statistics);
      RT_TRY(Status(builder.status()));
    }
    graph.values[loss].name = "loss";
    backward.outputs = {loss};
    backward.outputs.insert(backward.outputs.end(), outputs.begin(), outputs.end());
    return {};
  }

  /// Running values are averaged over the ranks, so that they stay the same on all.
  void average_statistics(Builder& builder, const RankShare& share, std::vector<StateUpdate>& updates) const {
    std::vector<StateUpdate*> running;
    std::vector<ValueId> parts;
    for (StateUpdate& update : updates) {
      if (states_[builder.value(update.state).state].kind != StateKind::Statistic) continue;
      running.push_back(&update);
      parts.push_back(builder.mul(update.value, share.of_ranks));
    }
    if (parts.empty()) return;
    const std::vector<ValueId> means = emit_sums_over_ranks(builder, parts);
    for (size_t i = 0; i < running.size(); ++i) running[i]->value = means[i];
  }

  /// Sums gradients over the ranks, bucket by bucket; a sharded optimizer takes whole buckets.
  std::vector<Gradient> sum_over_ranks(Builder& builder, const std::vector<Gradient>& gradients) {
    if (!options_.data_parallel.enabled) return gradients;
    builder.set_scope("ranks");
    std::vector<ValueId> values;
    for (const Gradient& gradient : gradients) values.push_back(gradient.value);
    const bool sharded = options_.optimizer.shards > 0;
    // The entries share the shards' states, so they must have the same buckets.
    if (buckets_.empty())
      buckets_ = make_buckets(builder.graph(), values, options_.data_parallel.bucket_bytes, [&](size_t i) {
        return sharded ? group_of(options_.optimizer, builder.value(gradients[i].parameter).name) : 0;
      });
    std::vector<Gradient> sums;
    for (const std::vector<size_t>& bucket : buckets_) {
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

  void add_entry(const char* name, Graph graph) {
    graph.name = name;
    model_.entries.push_back({.name = name, .graph = std::move(graph)});
  }

  Status make_train_step() {
    Backward backward;
    RT_TRY(make_backward(backward));
    Builder builder(backward.graph, &model_.states);
    RT_TRY(Status(builder.status()));
    const ValueId learning_rate = builder.input("learning_rate", DType::F32, {});
    std::vector<StateUpdate> updates;
    const std::vector<Gradient> gradients = sum_over_ranks(builder, backward.gradients);
    const ValueId skip = emit_optimizer(builder, options_.optimizer, gradients, learning_rate,
                                        backward.loss_scale, kNoValue, states_, updates);
    for (StateUpdate update : backward.statistics) {
      if (skip != kNoValue)
        update.value = builder.emit(op::WhereAttributes{}, {skip, update.state, update.value});
      updates.push_back(update);
    }
    for (ValueId output : backward.outputs) builder.output(output);
    RT_TRY(Status(builder.status()));
    backward.graph.state_updates = std::move(updates);
    add_entry("train_step", std::move(backward.graph));
    return {};
  }

  // --- gradient accumulation: the accumulators are states; the first micro-batch overwrites them

  ValueId sum_state(Builder& builder, const std::string& parameter, const TensorInfo& info) {
    const std::string name = text(parameter, ".gradient");
    return builder.state(name, states_.make(name, info, StateKind::Optimizer), info);
  }
  ValueId micro_batches(Builder& builder) {
    const TensorInfo info{.dtype = DType::I32, .shape = {}};
    return builder.state("micro_batches", states_.make("micro_batches", info, StateKind::Counter), info);
  }

  Status make_accumulate() {
    Backward backward;
    RT_TRY(make_backward(backward));
    Builder builder(backward.graph, &model_.states);
    RT_TRY(Status(builder.status()));
    builder.set_scope("accumulate");
    std::vector<StateUpdate> updates = backward.statistics;
    const ValueId count = micro_batches(builder), zero = builder.scalar(0, DType::I32);
    const ValueId is_first = builder.emit(op::EqualAttributes{}, {count, zero});
    for (const Gradient& gradient : backward.gradients) {
      const Value parameter = builder.value(gradient.parameter);
      const ValueId sum = sum_state(builder, parameter.name, parameter.info());
      const ValueId before =
          builder.emit(op::WhereAttributes{}, {is_first, builder.scalar_like(0, sum), sum});
      updates.push_back({.state = sum, .value = builder.add(before, gradient.value)});
      accumulated_.push_back(backward.graph.values[gradient.parameter]);
    }
    updates.push_back({.state = count, .value = builder.add(count, builder.scalar(1, DType::I32))});
    for (ValueId output : backward.outputs) builder.output(output);
    RT_TRY(Status(builder.status()));
    backward.graph.state_updates = std::move(updates);
    add_entry("accumulate", std::move(backward.graph));
    return {};
  }

  Status make_update() {
    Graph graph;
    Builder builder(graph, &model_.states);
    const ValueId learning_rate = builder.input("learning_rate", DType::F32, {});
    const ValueId count = micro_batches(builder);
    std::vector<Gradient> gradients;
    for (const Value& parameter : accumulated_)
      gradients.push_back({builder.state(parameter.name, parameter.state, parameter.info()),
                           sum_state(builder, parameter.name, parameter.info())});
    const ValueId loss_scale = emit_loss_scale(builder, options_.optimizer.gradients, states_);
    // Without a micro-batch there is no gradient: stale accumulators are divided by infinity.
    const ValueId any = builder.emit(op::GreaterAttributes{}, {count, builder.scalar(0, DType::I32)});
    const ValueId infinity = builder.scalar(std::numeric_limits<double>::infinity(), DType::F32);
    const ValueId divisor =
        builder.emit(op::WhereAttributes{}, {any, builder.cast(count, DType::F32), infinity});
    std::vector<StateUpdate> updates;
    gradients = sum_over_ranks(builder, gradients);
    emit_optimizer(builder, options_.optimizer, gradients, learning_rate, loss_scale, divisor, states_,
                   updates);
    updates.push_back({.state = count, .value = builder.scalar(0, DType::I32)});
    const ValueId used = builder.emit(op::IdentityAttributes{}, {count});
    RT_TRY(Status(builder.status()));
    graph.values[used].name = "micro_batches";
    builder.output(used);
    graph.state_updates = std::move(updates);
    add_entry("update", std::move(graph));
    return {};
  }

  void make_averaged_infer() {
    Graph graph = *model_.entry("infer");
    for (Value& value : graph.values) {
      if (value.role != Role::State || states_[value.state].kind != StateKind::Parameter) continue;
      const std::string name = average_name(value.name);
      for (uint32_t i = 0; i < model_.states.size(); ++i)
        if (model_.states[i].name == name) value.state = i;
    }
    add_entry("infer_ema", std::move(graph));
  }

  // Batch normalization uses the batch's statistics; quantization ranges follow the batches; random values
  // differ from step to step.
  std::vector<ValueId> training_form(Builder& builder, const Node& node, std::vector<StateUpdate>& updates) {
    if (node.kind() == OpKind::BatchNorm && in_training_mode(builder.graph(), node)) {
      op::BatchNormTrainAttributes attributes;
      attributes.epsilon = node.as<op::BatchNormAttributes>().epsilon;
      attributes.momentum = options_.batch_norm_momentum;
      attributes.unbiased = options_.batch_norm_unbiased;
      // A layer that is used again continues from the running values that its previous use updated.
      std::vector<ValueId> inputs = node.inputs;
      const auto update_of = [&](size_t input) {
        return std::find_if(updates.begin(), updates.end(),
                            [&](const StateUpdate& update) { return update.state == node.inputs[input]; });
      };
      for (size_t input : {kRunningMean, kRunningVariance})
        if (const auto before = update_of(input); before != updates.end()) inputs[input] = before->value;
      const std::vector<ValueId> outputs = builder.emit_many(make_op(attributes), inputs, 5);
      for (size_t input : {kRunningMean, kRunningVariance}) {
        const ValueId state = node.inputs[input], after = outputs[input - kRunningMean + 1];
        if (const auto before = update_of(input); before != updates.end())
          before->value = after;
        else if (builder.value(state).role == Role::State)
          updates.push_back({.state = state, .value = after});
      }
      return {outputs[0]};
    }
    if (node.kind() == OpKind::FakeQuantize)
      return emit_observed(builder, node, options_.range_momentum, updates);
    if (options_.adapter_dropout > 0 && reads_adapter_input(builder.graph(), node)) {
      Node dropping = node;
      const ValueId x = node.inputs[0], ratio = builder.scalar_like(options_.adapter_dropout, x);
      dropping.inputs[0] = emit_dropout(builder, x, ratio, builder.shape_of(x), ++dropout_seed_,
                                        random_counter(builder, updates))
                               .y;
      return builder.emit_node(dropping);
    }
    const bool random = node.kind() == OpKind::RandomUniform || node.kind() == OpKind::RandomNormal;
    if (random && node.inputs.size() == 1) {
      Node counted = node;
      counted.inputs.push_back(random_counter(builder, updates));
      return builder.emit_node(counted);
    }
    return {};
  }

  ValueId random_counter(Builder& builder, std::vector<StateUpdate>& updates) {
    const TensorInfo info{.dtype = DType::I64, .shape = {}};
    const uint32_t state = states_.make("random.counter", info, StateKind::Counter);
    for (ValueId id = 0; id < builder.graph().values.size(); ++id)
      if (builder.value(id).role == Role::State && builder.value(id).state == state) return id;
    const ValueId counter = builder.state("random.counter", state, info);
    updates.push_back({.state = counter, .value = builder.add(counter, builder.scalar(1, DType::I64))});
    return counter;
  }

  ModelGraph& model_;
  const TrainOptions& options_;
  TrainReport& report_;
  Graph& infer_;
  StateTable states_;
  bool has_adapters_ = false;
  int64_t dropout_seed_ = 0;
  std::map<std::string, DType> stored_types_;  ///< of values that are f32 now, by name
  std::vector<Value> accumulated_;             ///< the parameters that `accumulate` has gradients of
  std::vector<std::vector<size_t>> buckets_;   ///< of gradients that are summed over ranks in one operation
};

}  // namespace

Status add_train_entry(ModelGraph& model, const TrainOptions& options, TrainReport* report) {
  if (model.entry("infer") == nullptr) return invalid_argument("train: the model has no entry 'infer'");
  if (model.entry("train_step") != nullptr)
    return invalid_argument(
        "train: the model already has an entry 'train_step'; compile it again from its source");
  ModelGraph changed = model;
  changed.entries.reserve(changed.entries.size() + 4);  // infer_ stays where it is
  TrainReport local;
  RT_TRY(TrainEntry(changed, options, local).run());
  model = std::move(changed);
  if (report != nullptr) *report = std::move(local);
  return {};
}

}  // namespace librt::compiler
