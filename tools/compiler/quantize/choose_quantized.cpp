// Chooses the tensors of a graph to quantize: the inputs of each Conv and MatMul, and before them everything
// that can be computed on quantized values.
#include <algorithm>
#include <set>

#include "tools/compiler/passes/pattern.h"
#include "tools/compiler/quantize/quantization_edit.h"

namespace librt::compiler {
namespace {

bool same_dims(const Graph& graph, ValueId a, ValueId b) {
  return graph[a].dims == graph[b].dims && graph[a].dtype == graph[b].dtype;
}

/// Only those that quantize_epilogue.cpp moves after a QuantizeLinear, and Identity, which is gone by then.
bool moves(OpKind kind) {
  return kind == OpKind::MaxPool || kind == OpKind::Reshape || kind == OpKind::Transpose ||
         kind == OpKind::Identity;
}

/// Activations that every epilogue of an integer operator has, QuantizedAdd included.
bool bounds(OpKind kind) {
  return kind == OpKind::Relu || kind == OpKind::Clip;
}

/// Functions that nets put between layers, those of epilogues and Elu: their operand is quantized too, so
/// that one Lookup computes them.
bool is_activation(const Node& node) {
  return node.kind() == OpKind::Elu || activation_of(node);
}

class Chooser {
 public:
  Chooser(const Graph& graph, bool unfused, const std::set<ValueId>& unfit)
      : graph_(graph),
        unfused_(unfused),
        unfit_(unfit),
        producers_(producers(graph)),
        uses_(use_counts(graph)),
        constant_(unfused ? constant_values(graph) : std::vector<bool>()) {}

  QuantizationChoice run(const std::function<bool(const std::string&)>& keep) {
    QuantizationChoice choice;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (!is_quantizable(node) || keep(node.name)) continue;
      if (!is_fit(node.inputs[0])) continue;
      choice.matmuls.push_back(id);
      want(node.inputs[0]);
    }
    for (size_t i = 0; i < wanted_.size(); ++i) go_up(wanted_[i]);
    std::sort(wanted_.begin(), wanted_.end());
    choice.values = wanted_;
    for (const ValueId value : wanted_) choice.scale_of.push_back(root(value));
    return choice;
  }

 private:
  bool is_constant(ValueId id) const { return unfused_ ? constant_[id] : graph_[id].role == Role::Constant; }
  bool is_quantizable(const Node& node) const {
    return is_matmul_or_conv(graph_, node, [&](ValueId id) { return is_constant(id); });
  }

  bool is_fit(ValueId value) const { return !unfit_.contains(before_moves(graph_, producers_, value)); }

  /// Max pooling and data movement work on quantized values, so their source is quantized instead.
  ValueId want(ValueId value) {
    const ValueId source = before_moves(graph_, producers_, value);
    if (!is_constant(source) && seen_.insert(source).second) wanted_.push_back(source);
    return source;
  }

  /// Whether this and the nodes before it will be fused into a Conv or MatMul: normalization, bias, one
  /// activation.
  bool ends_matmul(ValueId value) const {
    bool active = false;
    for (bool first = true;; first = false) {
      if (!producers_[value] || (!first && uses_[value] != 1)) return false;
      const Node& node = graph_.nodes[*producers_[value]];
      const bool normalizes = node.kind() == OpKind::BatchNorm || node.kind() == OpKind::BatchNormTrain;
      if (is_quantizable(node)) return true;
      if (node.kind() == OpKind::Add && (is_constant(node.inputs[0]) || is_constant(node.inputs[1]))) {
        value = node.inputs[is_constant(node.inputs[0]) ? 1 : 0];
      } else if (normalizes || node.kind() == OpKind::Transpose || node.kind() == OpKind::Reshape) {
        value = node.inputs[0];
      } else if (!active && activation_of(node)) {
        active = true;
        value = node.inputs[0];
      } else {
        return false;
      }
    }
  }

  /// The inputs of a wanted value's producer are quantized too where it can be computed on quantized values.
  void go_up(ValueId value) {
    if (!producers_[value] || (unfused_ && ends_matmul(value))) return;
    const Node* node = &graph_.nodes[*producers_[value]];
    if (bounds(node->kind()) && producers_[node->inputs[0]] && uses_[node->inputs[0]] == 1) {
      const Node& before = graph_.nodes[*producers_[node->inputs[0]]];
      if (before.kind() == OpKind::Add) node = &before;
    }
    if (node->kind() == OpKind::Add) {
      const ValueId a = node->inputs[0], b = node->inputs[1];
      const bool sums =
          same_dims(graph_, a, b) && !is_constant(a) && !is_constant(b) && graph_[a].dtype == DType::F32;
      if (sums && is_fit(a) && is_fit(b)) {
        want(a);
        want(b);
      }
    } else if (node->kind() == OpKind::Concat) {
      if (unfused_) return;  // the parts take the range of the whole after training
      for (const ValueId part : node->inputs)
        if (is_constant(part) || !is_fit(part)) return;
      for (const ValueId part : node->inputs) parent_[root(want(part))] = root(value);
    } else if (is_activation(*node) && is_fit(node->inputs[0])) {
      want(node->inputs[0]);
    }
  }

  ValueId root(ValueId value) {
    for (auto at = parent_.find(value); at != parent_.end() && at->second != value;
         at = parent_.find(value)) {
      const auto above = parent_.find(at->second);
      if (above != parent_.end()) at->second = above->second;  // shortens the path
      value = at->second;
    }
    return value;
  }

  const Graph& graph_;
  const bool unfused_;
  const std::set<ValueId>& unfit_;
  std::vector<std::optional<NodeId>> producers_;
  std::vector<uint32_t> uses_;
  std::vector<bool> constant_;
  std::vector<ValueId> wanted_;
  std::set<ValueId> seen_;
  std::map<ValueId, ValueId> parent_;
};

}  // namespace

std::vector<bool> constant_values(const Graph& graph) {
  std::vector<bool> constant(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) constant[id] = graph[id].role == Role::Constant;
  for (const Node& node : graph.nodes) {
    const bool all =
        !node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                            [&](ValueId id) { return id == kNoValue || constant[id]; });
    for (const ValueId output : node.outputs)
      if (output != kNoValue) constant[output] = all;
  }
  return constant;
}

ValueId before_moves(const Graph& graph, const std::vector<std::optional<NodeId>>& producers, ValueId value) {
  while (producers[value]) {
    const Node& node = graph.nodes[*producers[value]];
    if (!moves(node.kind()) || graph[node.inputs[0]].dtype != DType::F32) break;
    value = node.inputs[0];
  }
  return value;
}

QuantizationChoice choose_quantized(const Graph& graph, const KeepPredicate& keep,
                                    const std::set<ValueId>& unfit) {
  return Chooser(graph, false, unfit).run(keep);
}

QuantizationChoice choose_fake_quantized(const Graph& graph, const KeepPredicate& keep,
                                         const std::set<ValueId>& unfit) {
  return Chooser(graph, true, unfit).run(keep);
}

}  // namespace librt::compiler
