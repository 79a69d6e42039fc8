// Step 1 of adding training entries: which constants of a net are weights to train, and become states.
#include <algorithm>

#include "runtime/ops/page.h"
#include "tools/compiler/name_list.h"
#include "tools/compiler/name_pattern.h"
#include "tools/compiler/train/train_steps.h"

namespace librt::compiler {
namespace {

constexpr size_t kMostNames = 16;  // in a message

/// By value: those that determine a shape, or are used to compute one.
std::vector<bool> find_shape_operands(const Graph& graph) {
  std::vector<bool> found(graph.values.size());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const uint32_t operands = ops::page_of(node->kind())->shape_operands;
    const bool leads_to_shape = node->kind() != OpKind::Shape &&
                                std::any_of(node->outputs.begin(), node->outputs.end(), [&](ValueId output) {
                                  return output != kNoValue && found[output];
                                });
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (node->inputs[i] != kNoValue && (leads_to_shape || (i < 32 && (operands >> i & 1u) != 0)))
        found[node->inputs[i]] = true;
  }
  return found;
}

/// How the operators of a net use a value.
struct Use {
  bool is_computed_with = false;  ///< other than as a running value of batch normalization
  bool is_running = false;        ///< as such a value
  bool is_layer_operand = false;  ///< as weight, scale or bias of a layer
  bool decides_shape = false;
};

/// Weight, scale or bias of a layer; the bias of a linear layer is what is added to the MatMul's result.
bool is_layer_operand(const Graph& graph, const Node& node, size_t input,
                      const std::vector<std::optional<NodeId>>& producer) {
  switch (node.kind()) {
    case OpKind::Conv:
    case OpKind::ConvTranspose:
    case OpKind::LayerNorm:
    case OpKind::RmsNorm: return input > 0;
    case OpKind::MatMul: return true;
    default: break;
  }
  if (is_batch_norm(node)) return input > 0;
  if (node.kind() != OpKind::Add) return false;
  const ValueId other = node.inputs[1 - input];
  return producer[other] && graph.nodes[*producer[other]].kind() == OpKind::MatMul;
}

std::vector<Use> find_uses(const Graph& graph) {
  std::vector<Use> uses(graph.values.size());
  const auto producer = producers(graph);
  const std::vector<bool> decides_shape = find_shape_operands(graph);
  for (ValueId id = 0; id < uses.size(); ++id) uses[id].decides_shape = decides_shape[id];
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      // Reading a weight's shape does not read the weight.
      if (node.inputs[i] == kNoValue || node.kind() == OpKind::Shape) continue;
      Use& use = uses[node.inputs[i]];
      if (is_batch_norm(node) && (i == kRunningMean || i == kRunningVariance))
        use.is_running = true;
      else
        use.is_computed_with = true;
      if (is_layer_operand(graph, node, i, producer)) use.is_layer_operand = true;
    }
  return uses;
}

/// Whether a constant may be a weight: named, float, some operator computes with it, and it determines no
/// shape.
bool is_candidate(const Value& value, const Use& use) {
  if (value.role != Role::Constant || !is_float(value.dtype) || value.name.empty()) return false;
  // Nothing reads it, or it follows its batch normalization.
  if (!use.is_computed_with) return false;
  // Resize's scales; a weight may determine a shape through data, but is larger.
  return !use.decides_shape || value.info().elements() > 2 * kMaxRank;
}

/// A single element may also be a constant of a formula, if it is not a bias or the like.
bool is_sure(const Value& value, const Use& use, const KnownWeights& known) {
  return value.info().elements() > 1 || use.is_running || use.is_layer_operand ||
         known.parameters.contains(value.name);
}

void add_trained(TrainReport& report, const Value& value) {
  report.trained.push_back(value.name);
  report.trained_elements += value.info().elements();
}

/// A 16-bit weight becomes an f32 state, its master weight: most updates are smaller than a 16-bit step.
void to_state(Training& training, Value& value, StateKind kind) {
  const DType stored = value.dtype;
  if (is_narrow(stored)) {
    std::vector<std::byte> wide(static_cast<size_t>(value.info().elements()) * sizeof(float));
    convert_floats(value.data.data, stored, wide.data(), DType::F32, value.info().elements());
    value.data = Blob::own(std::move(wide));
    value.dtype = DType::F32;
  }
  value.role = Role::State;
  value.state = training.states.make(value.name, value.info(), kind, value.data);
  value.data = {};
  if (is_narrow(stored)) training.stored_types[value.name] = stored;
}

bool is_match_of_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return is_match(pattern, name); });
}

/// Parameters that are states already (adapters) are always trained. Weights that no pattern of `trainable`,
/// or one of `frozen`, matches stay constants; without patterns, all are trained, or none where there are
/// adapters.
Status choose_parameters(Training& training) {
  Graph& infer = training.infer;
  TrainReport& report = training.report;
  const std::vector<std::string>& patterns = training.options.trainable;
  const std::vector<Use> uses = find_uses(infer);
  bool has_adapters = false;
  for (const Value& value : infer.values)
    if (value.role == Role::State && training.states[value.state].kind == StateKind::Parameter) {
      add_trained(report, value);
      has_adapters = true;
    }
  const KnownWeights& known = training.options.known;
  const auto is_named = [&](const std::string& name) {
    return std::find(patterns.begin(), patterns.end(), name) != patterns.end();
  };
  const auto is_wanted = [&](const std::string& name) {
    if (is_match_of_any(training.options.frozen, name)) return false;
    if (known.buffers.contains(name)) return is_named(name);
    return patterns.empty() ? !has_adapters : is_match_of_any(patterns, name);
  };
  std::vector<std::string> refused;
  for (ValueId id = 0; id < infer.values.size(); ++id) {
    Value& value = infer.values[id];
    if (!is_candidate(value, uses[id])) continue;
    if (!is_sure(value, uses[id], known) && !is_named(value.name)) {
      if (known.single.contains(value.name)) report.single.push_back(value.name);
      continue;
    }
    if (is_wanted(value.name) && is_exchangeable(value.dtype)) {
      add_trained(report, value);
      to_state(training, value, StateKind::Parameter);
      continue;
    }
    report.frozen.push_back(value.name);
    if (known.buffers.contains(value.name)) report.frozen_buffers.push_back(value.name);
    if (is_wanted(value.name) && !patterns.empty())
      refused.push_back(text(value.name, " (", name_of(value.dtype), ")"));
  }
  if (!refused.empty())
    return unsupported("train: only f32, f16 and bf16 weights can be trained whole, not ",
                       listed(refused, kMostNames), "; adapters (lora) can be trained on top of them");
  if (report.trained.empty() && report.frozen.empty())
    return invalid_argument(
        "train: the model has no f32, f16 or bf16 weights; single values that may be constants of "
        "formulas, which the patterns of trainable weights can name: ",
        listed(report.single, kMostNames));
  if (report.trained.empty())
    return invalid_argument(
        "train: no f32, f16 or bf16 weight is left by the patterns of trainable and frozen weights; the "
        "weights are ",
        listed(report.frozen, kMostNames));
  for (const std::string& pattern : training.options.frozen)
    if (std::none_of(report.frozen.begin(), report.frozen.end(),
                     [&](const std::string& name) { return is_match(pattern, name); }))
      return invalid_argument("train: the frozen pattern '", pattern,
                              "' matches no weight; the trained ones are ",
                              listed(report.trained, kMostNames));
  return {};
}

/// Running values of batch normalizations whose scale or bias is trained are updated; the others stay frozen.
void choose_statistics(Training& training) {
  Graph& infer = training.infer;
  for (const Node& node : infer.nodes)
    if (is_batch_norm(node) && in_training_mode(infer, node))
      for (size_t input : {kRunningMean, kRunningVariance}) {
        Value& value = infer.values[node.inputs[input]];
        if (value.role == Role::Constant) to_state(training, value, StateKind::Statistic);
      }
}

/// A group of parameters that matches none is a mistake.
Status check_groups(const Training& training) {
  const std::vector<std::string>& trained = training.report.trained;
  for (const ParameterGroup& group : training.options.optimizer.groups)
    if (std::none_of(trained.begin(), trained.end(),
                     [&](const std::string& name) { return is_match(group.pattern, name); }))
      return invalid_argument("train: the group '", group.pattern, "' matches no trained weight; these are ",
                              listed(trained, kMostNames));
  return {};
}

}  // namespace

Status choose_states(Training& training) {
  RT_TRY(choose_parameters(training));
  choose_statistics(training);
  return check_groups(training);
}

}  // namespace librt::compiler
