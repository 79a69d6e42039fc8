#include "tools/compiler/train_entry.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "runtime/ops/page.h"
#include "tools/compiler/autodiff.h"
#include "tools/compiler/builder.h"

namespace rt::compiler {
namespace {

// What batch normalization's running values are, so that they become state and not weights.
constexpr size_t kRunningMean = 3;
constexpr size_t kRunningVariance = 4;

bool is_batch_norm(const Node& node) {
  return node.kind() == OpKind::BatchNorm || node.kind() == OpKind::BatchNormTrain;
}

class TrainEntry {
 public:
  TrainEntry(ModelGraph& model, const TrainOptions& options, TrainReport& report)
      : model_(model), options_(options), report_(report), infer_(*model.entry("infer")) {}

  Status run() {
    RT_TRY(choose_states());
    RT_TRY(make_infer());
    RT_TRY(make_train_step());
    return {};
  }

 private:
  bool matches(const std::string& name) const {
    if (options_.trainable.empty()) return true;
    return std::any_of(options_.trainable.begin(), options_.trainable.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
  }

  // Turns weights into State values of the infer graph. A weight is a named float constant of more than one
  // element that some operator computes with; frozen ones stay constants.
  Status choose_states() {
    std::vector<bool> running(infer_.values.size()), statistic_only(infer_.values.size(), true);
    for (const Node& node : infer_.nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue) continue;
        if (is_batch_norm(node) && (i == kRunningMean || i == kRunningVariance))
          running[node.inputs[i]] = true;
        else
          statistic_only[node.inputs[i]] = false;
      }
    for (ValueId id = 0; id < infer_.values.size(); ++id) {
      Value& value = infer_.values[id];
      if (value.role != Role::Constant || value.dtype != DType::F32 || value.name.empty()) continue;
      if (value.info().elements() < 2 && !running[id]) continue;
      if (running[id] && statistic_only[id]) continue;  // follows its batch normalization
      if (statistic_only[id]) continue;                 // nothing reads it
      if (!matches(value.name)) {
        report_.frozen.push_back(value.name);
        continue;
      }
      report_.trained.push_back(value.name);
      report_.trained_elements += value.info().elements();
      to_state(value, StateKind::Parameter);
    }
    if (report_.trained.empty())
      return invalid_argument("train: no weight matches the trainable patterns; the weights are ",
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

  static bool in_training_mode(const Graph& graph, const Node& node) {
    return graph.values[node.inputs[1]].role == Role::State ||
           graph.values[node.inputs[2]].role == Role::State;
  }

  void to_state(Value& value, StateKind kind) {
    value.role = Role::State;
    value.state = add_state(value.name, value.info(), kind);
    model_.states.back().initial = value.data;
    value.data = {};
  }

  uint32_t add_state(std::string name, const TensorInfo& info, StateKind kind) {
    std::string unique = name;
    for (int copy = 2; std::any_of(model_.states.begin(), model_.states.end(),
                                   [&](const State& state) { return state.name == unique; });
         ++copy)
      unique = text(name, ".", copy);
    model_.states.push_back({.name = std::move(unique), .info = info, .kind = kind, .initial = {}});
    return static_cast<uint32_t>(model_.states.size() - 1);
  }

  static std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) append(all, text(all.empty() ? "" : ", ", name));
    return all.empty() ? "none" : all;
  }

  // Copies `from` node by node through a builder. `replace` may emit something else for a node: it returns
  // the outputs, or nothing to keep the node.
  template <class Replace>
  Status rebuild(const Graph& from, Builder& builder, std::vector<ValueId>& map, Replace replace) {
    map.assign(from.values.size(), kNoValue);
    Graph& to = builder.graph();
    to.name = from.name;
    to.symbols = from.symbols;
    for (ValueId id : from.inputs)
      map[id] = builder.input(from.values[id].name, from.values[id].dtype, from.values[id].dims);
    for (ValueId id = 0; id < from.values.size(); ++id) {
      const Value& value = from.values[id];
      if (value.role == Role::Constant) {
        map[id] = builder.constant(value.info(), value.data);
        if (map[id] != kNoValue) to.values[map[id]].name = value.name;
      } else if (value.role == Role::State) {
        map[id] = builder.state(value.name, value.state, value.info());
      }
    }
    for (const Node& node : from.nodes) {
      RT_TRY(Status(builder.status()));
      Node copy = node;
      for (ValueId& input : copy.inputs)
        if (input != kNoValue) input = map[input];
      builder.set_scope(node.name);
      std::vector<ValueId> outputs = replace(copy);
      if (outputs.empty()) outputs = builder.emit_node(copy);
      RT_TRY(Status(builder.status()).in(describe(node)));
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == kNoValue) continue;
        map[node.outputs[i]] = outputs[i];
        if (to.values[outputs[i]].name.empty())
          to.values[outputs[i]].name = from.values[node.outputs[i]].name;
      }
    }
    return {};
  }

  // Batch normalization exported in training mode computes with its running values in `infer`.
  Status make_infer() {
    Graph graph;
    Builder builder(graph, &model_.states);
    std::vector<ValueId> map;
    RT_TRY(rebuild(infer_, builder, map, [&](const Node& node) -> std::vector<ValueId> {
      if (node.kind() != OpKind::BatchNormTrain) return {};
      op::BatchNormAttributes attributes;
      attributes.epsilon = node.as<op::BatchNormTrainAttributes>().epsilon;
      std::vector<ValueId> outputs = builder.emit_many(make_op(attributes), node.inputs, 1);
      outputs.push_back(node.inputs[kRunningMean]);
      outputs.push_back(node.inputs[kRunningVariance]);
      outputs.resize(node.outputs.size(), outputs[0]);
      return outputs;
    }));
    for (ValueId id : infer_.outputs) builder.output(map[id]);
    RT_TRY(Status(builder.status()));
    infer_ = std::move(graph);
    return {};
  }

  Status make_train_step() {
    Graph graph;
    Builder builder(graph, &model_.states);
    std::vector<ValueId> map;
    std::vector<StateUpdate> updates;
    RT_TRY(rebuild(infer_, builder, map,
                   [&](const Node& node) { return training_form(builder, node, updates); }));
    std::vector<ValueId> outputs;
    for (ValueId id : infer_.outputs) outputs.push_back(map[id]);
    if (outputs.empty()) return invalid_argument("train: the model has no output");

    builder.set_scope("loss");
    RT_ASSIGN(const ValueId loss, emit_loss(builder, outputs[0]));
    std::vector<ValueId> parameters;
    for (ValueId id = 0; id < graph.values.size(); ++id)
      if (graph.values[id].role == Role::State &&
          model_.states[graph.values[id].state].kind == StateKind::Parameter)
        parameters.push_back(id);
    RT_ASSIGN(const std::vector<ValueId> gradients, differentiate(builder, loss, parameters));

    builder.set_scope("optimizer");
    const ValueId learning_rate = builder.input("learning_rate", DType::F32, {});
    const ValueId step = emit_step_counter(builder, updates);
    for (size_t i = 0; i < parameters.size(); ++i)
      if (gradients[i] != kNoValue)
        emit_update(builder, parameters[i], gradients[i], learning_rate, step, updates);
    RT_TRY(Status(builder.status()));

    graph.values[loss].name = "loss";
    builder.output(loss);
    for (ValueId output : outputs) builder.output(output);
    graph.name = "train_step";
    graph.state_updates = std::move(updates);
    model_.entries.push_back({.name = "train_step", .graph = std::move(graph)});
    return {};
  }

  // Composites without a gradient rule are written out; batch normalization uses the batch's statistics.
  std::vector<ValueId> training_form(Builder& builder, const Node& node, std::vector<StateUpdate>& updates) {
    if (node.kind() == OpKind::BatchNorm && in_training_mode(builder.graph(), node)) {
      op::BatchNormTrainAttributes attributes;
      attributes.epsilon = node.as<op::BatchNormAttributes>().epsilon;
      attributes.momentum = options_.batch_norm_momentum;
      attributes.unbiased = options_.batch_norm_unbiased;
      const std::vector<ValueId> outputs = builder.emit_many(make_op(attributes), node.inputs, 5);
      for (size_t i : {size_t{0}, size_t{1}})
        if (builder.value(node.inputs[kRunningMean + i]).role == Role::State)
          updates.push_back({.state = node.inputs[kRunningMean + i], .value = outputs[1 + i]});
      return {outputs[0]};
    }
    const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
    if (page != nullptr && page->gradient == nullptr && page->body != nullptr)
      return page->body(builder, node, node.inputs);
    return {};
  }

  Result<ValueId> emit_loss(Builder& builder, ValueId output) {
    const Value prediction = builder.value(output);
    if (options_.loss == Loss::MeanSquaredError) {
      const ValueId target = builder.input("target", prediction.dtype, prediction.dims);
      const ValueId difference = builder.sub(output, target);
      return builder.reduce_mean(builder.mul(difference, difference), {}, false);
    }
    // A softmax at the end is part of the loss: log(softmax) of its input is computed in one stable step.
    const auto by_value = producers(builder.graph());
    if (by_value[output].has_value() && builder.graph().nodes[*by_value[output]].kind() == OpKind::Softmax) {
      output = builder.graph().nodes[*by_value[output]].inputs[0];
      report_.stripped_softmax = true;
    }
    const Value logits = builder.value(output);
    if (logits.rank() != 2)
      return invalid_argument("train: cross entropy needs logits [batch, classes], the first output '",
                              prediction.name, "' has rank ", logits.rank());
    const ValueId labels = builder.input("labels", DType::I64, {logits.dims[0]});
    Node node;
    node.op = make_op(op::SoftmaxCrossEntropyAttributes{});
    const std::vector<ValueId> inputs = {output, labels};
    const std::vector<ValueId> loss =
        ops::compiler_page_of(OpKind::SoftmaxCrossEntropy)->body(builder, node, inputs);
    RT_TRY(Status(builder.status()).in("loss"));
    return loss[0];
  }

  // The number of the step being made, from 1; only where the optimizer asks for it.
  ValueId emit_step_counter(Builder& builder, std::vector<StateUpdate>& updates) {
    if (options_.optimizer == Optimizer::Sgd) return kNoValue;
    const TensorInfo info{.dtype = DType::I32, .shape = {}};
    const ValueId counter =
        builder.state("optimizer.step", add_state("optimizer.step", info, StateKind::Counter), info);
    const ValueId step = builder.add(counter, builder.scalar(1, DType::I32));
    updates.push_back({.state = counter, .value = step});
    return step;
  }

  void emit_update(Builder& builder, ValueId parameter, ValueId gradient, ValueId learning_rate, ValueId step,
                   std::vector<StateUpdate>& updates) {
    const std::string name = builder.value(parameter).name;
    const TensorInfo info = builder.value(parameter).info();
    auto moment = [&](const char* suffix) {
      return builder.state(name + suffix, add_state(name + suffix, info, StateKind::Optimizer), info);
    };
    builder.set_scope(text("optimizer.", name));
    std::vector<ValueId> states = {parameter};
    std::vector<ValueId> updated;
    if (options_.optimizer == Optimizer::Sgd) {
      op::SgdStepAttributes attributes;
      attributes.momentum = options_.momentum;
      attributes.weight_decay = options_.weight_decay;
      attributes.nesterov = options_.nesterov;
      states.push_back(options_.momentum != 0 ? moment(".velocity") : kNoValue);
      const std::vector<ValueId> inputs = {parameter, gradient, states[1], learning_rate};
      updated = builder.emit_many(make_op(attributes), inputs, states[1] == kNoValue ? 1 : 2);
    } else {
      op::AdamStepAttributes attributes;
      attributes.beta1 = options_.beta1;
      attributes.beta2 = options_.beta2;
      attributes.epsilon = options_.epsilon;
      attributes.weight_decay = options_.weight_decay;
      attributes.decoupled = options_.optimizer == Optimizer::AdamW;
      states.push_back(moment(".m"));
      states.push_back(moment(".v"));
      const std::vector<ValueId> inputs = {parameter, gradient, states[1], states[2], step, learning_rate};
      updated = builder.emit_many(make_op(attributes), inputs, 3);
    }
    if (!builder.status().ok()) return;
    for (size_t i = 0; i < updated.size(); ++i) updates.push_back({.state = states[i], .value = updated[i]});
  }

  ModelGraph& model_;
  const TrainOptions& options_;
  TrainReport& report_;
  Graph& infer_;
};

}  // namespace

Status add_train_entry(ModelGraph& model, const TrainOptions& options, TrainReport* report) {
  if (model.entry("infer") == nullptr) return invalid_argument("train: the model has no entry 'infer'");
  if (model.entry("train_step") != nullptr)
    return invalid_argument(
        "train: the model already has an entry 'train_step'; compile it again from its source");
  ModelGraph changed = model;
  changed.entries.reserve(changed.entries.size() + 1);  // infer_ stays where it is
  TrainReport local;
  RT_TRY(TrainEntry(changed, options, local).run());
  model = std::move(changed);
  if (report != nullptr) *report = std::move(local);
  return {};
}

}  // namespace rt::compiler
