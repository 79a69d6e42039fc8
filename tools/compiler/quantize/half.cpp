#include "tools/compiler/quantize/half.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "runtime/core/convert_floats.h"
#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/name_pattern.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

ops::Arithmetic arithmetic_of(const Node& node) {
  const ops::Page* page = ops::page_of(node.kind());
  return page == nullptr || ops::is_control(node.kind()) ? ops::Arithmetic::PrecisionSensitive
                                                         : page->arithmetic;
}

/// Reading a constant of at least this many elements in 16 bits is worth a Cast after the reader.
constexpr int64_t kLargeConstant = 4096;

/// Nodes between a small constant and the divisor that it guards.
constexpr size_t kMostBetween = 16;
/// Below this f16 loses digits, and in the end the number.
constexpr double kSmallestNormal = 0x1p-14;

/// Nodes whose values leave f16's range where nothing else does: squares, and divisions by what a small
/// constant keeps from zero, as in x / max(norm(x), 1e-12). In f16 that is 0 / 0 for a row of zeros.
class NodesOfWideRange {
 public:
  explicit NodesOfWideRange(const Graph& graph)
      : graph_(graph), producers_(producers(graph)), wide_(graph.nodes.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      const Node& node = graph.nodes[id];
      if (node.kind() == OpKind::Pow || (node.kind() == OpKind::Mul && node.inputs[0] == node.inputs[1]))
        wide_[id] = true;
      if (node.kind() == OpKind::Div || node.kind() == OpKind::Reciprocal)
        wide_[id] = keep_divisor(node.inputs.back());
    }
  }
  const std::vector<bool>& nodes() const noexcept { return wide_; }

 private:
  /// Marks the nodes from the small constant to the divisor; whether there is one.
  bool keep_divisor(ValueId value) {
    std::vector<NodeId> path;
    while (producers_[value] && path.size() < kMostBetween) {
      path.push_back(*producers_[value]);
      const Node& node = graph_.nodes[path.back()];
      if (is_guard(node)) {
        for (const NodeId id : path) wide_[id] = true;
        return true;
      }
      if (!ops::moves_elements(node.kind()) && node.kind() != OpKind::Sqrt) return false;
      value = node.inputs[0];
    }
    return false;
  }
  bool is_guard(const Node& node) const {
    if (node.kind() == OpKind::Clip) return is_small(node.as<op::ClipAttributes>().minimum);
    if (node.kind() != OpKind::Add && node.kind() != OpKind::Maximum) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const Value& value = graph_[id];
      return value.role == Role::Constant && value.dtype == DType::F32 && value.info().elements() == 1 &&
             is_small(load_element(value.data.data, DType::F32, 0));
    });
  }
  static bool is_small(double x) { return x > 0 && x < kSmallestNormal; }

  const Graph& graph_;
  std::vector<std::optional<NodeId>> producers_;
  std::vector<bool> wide_;
};

class HalfNodes {
 public:
  HalfNodes(const Graph& graph, const PassContext& context)
      : graph_(graph), half_(graph.nodes.size()), readers_(graph.values.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      for (const ValueId input : graph.nodes[id].inputs)
        if (input != kNoValue && is_exchangeable(graph[input].dtype)) readers_[input].push_back(id);
      keep_.push_back(is_kept(graph.nodes[id], context));
    }
    if (context.dtype != DType::F16) return;
    const NodesOfWideRange wide(graph);
    for (NodeId id = 0; id < graph.nodes.size(); ++id) keep_[id] = keep_[id] || wide.nodes()[id];
  }

  std::vector<DType> types(DType dtype) {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      if (arithmetic_of(graph_.nodes[id]) == ops::Arithmetic::Matmul || reads_large_constant(id)) add(id);
    while (!open_.empty()) {
      const Node& node = graph_.nodes[open_.back()];
      open_.pop_back();
      for (const ValueId output : node.outputs)
        if (output != kNoValue)
          for (const NodeId reader : readers_[output]) add(reader);
    }
    std::vector<DType> types;
    for (const bool half : half_) types.push_back(half ? dtype : DType::F32);
    return types;
  }

 private:
  bool reads_large_constant(NodeId id) const {
    for (const ValueId input : graph_.nodes[id].inputs)
      if (input != kNoValue && graph_[input].role == Role::Constant && is_exchangeable(graph_[input].dtype) &&
          graph_[input].info().elements() >= kLargeConstant)
        return true;
    return false;
  }
  static bool is_kept(const Node& node, const PassContext& context) {
    bool kept = false;
    for (const std::string& pattern : context.keep_fp32) {
      if (!is_match(pattern, node.name)) continue;
      kept = true;
      if (context.unmatched != nullptr) context.unmatched->erase(pattern);
    }
    return kept;
  }
  void add(NodeId id) {
    if (half_[id] || keep_[id] || arithmetic_of(graph_.nodes[id]) == ops::Arithmetic::PrecisionSensitive)
      return;
    half_[id] = true;
    open_.push_back(id);
  }
  const Graph& graph_;
  std::vector<bool> half_, keep_;
  std::vector<std::vector<NodeId>> readers_;  ///< by value of a float type
  std::vector<NodeId> open_;
};

/// Whether the node's result may hold a value of its operand i, or one that is larger than an operand.
bool passes_on(const Node& node, size_t i) {
  if (node.kind() == OpKind::Clip) return i == 0;
  return ops::form_of(node.kind()) != ops::Form::Opaque || ops::moves_elements(node.kind()) ||
         node.kind() == OpKind::Concat || node.kind() == OpKind::Pad;
}

/// Writes the graph again, with two Casts where a value is rounded.
class Rounder {
 public:
  using OfBody = std::function<std::vector<DType>(const Graph& body)>;
  Rounder(const Graph& from, Graph& to, const std::vector<State>& states, const OfBody& of_body)
      : from_(from),
        states_(states),
        of_body_(of_body),
        builder_(to, &states),
        copies_(from.values.size(), kNoValue),
        rounded_(copies_) {}

  Status run(const std::vector<DType>& types) {
    Graph& to = builder_.graph();
    to.name = from_.name;
    to.refusal = from_.refusal;
    for (const ValueId input : from_.inputs)
      copies_[input] = builder_.input(from_[input].name, from_[input].dtype, from_[input].dims);
    for (ValueId id = 0; id < from_.values.size(); ++id) {
      const Value& value = from_[id];
      if (value.role == Role::Constant) copies_[id] = builder_.constant(value.info(), value.data);
      if (value.role == Role::State) copies_[id] = builder_.state(value.name, value.state, value.info());
    }
    for (size_t i = 0; i < from_.nodes.size(); ++i) copy_node(from_.nodes[i], types[i]);
    for (const ValueId output : from_.outputs) {
      if (!builder_.status().ok()) break;
      builder_.output(copies_[output]);
      to[copies_[output]].name = from_[output].name;
    }
    for (const StateUpdate& update : from_.state_updates)
      to.state_updates.push_back({.state = copies_[update.state], .value = copies_[update.value]});
    return builder_.status();
  }

 private:
  ValueId rounded_to(DType type, ValueId value, bool exceeds) {
    return builder_.value(value).dtype == DType::F32
               ? builder_.cast(narrow(builder_, value, type, exceeds), DType::F32)
               : value;
  }
  /// Whether the value has to be clipped before it is rounded.
  bool exceeds(ValueId value, DType type) {
    std::vector<bool>& all = exceeding_[type];
    if (all.empty()) all = exceeding(from_, type);
    return all[value];
  }
  void copy_node(const Node& node, DType type) {
    Node copy = node;
    builder_.set_scope(text(node.name, "_rounded"));
    for (ValueId& input : copy.inputs) {
      if (input == kNoValue) continue;
      if (type != DType::F32 && rounded_[input] == kNoValue)
        rounded_[input] = rounded_to(type, copies_[input], exceeds(input, type));
      input = type == DType::F32 ? copies_[input] : rounded_[input];
    }
    if (ops::is_control(node.kind()))
      for (Graph& body : copy.bodies) {
        Result<Graph> own = rounded(body, states_, of_body_(body), of_body_);
        if (!own.ok()) return builder_.fail(own.status());
        body = std::move(*own);
      }
    builder_.set_scope(node.name);
    const std::vector<ValueId> outputs = builder_.emit_node(std::move(copy));
    if (!builder_.status().ok()) return;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      copies_[node.outputs[i]] = type == DType::F32 ? outputs[i] : rounded_to(type, outputs[i], false);
      if (type != DType::F32) rounded_[node.outputs[i]] = copies_[node.outputs[i]];
    }
  }

  const Graph& from_;
  const std::vector<State>& states_;
  const OfBody& of_body_;
  Builder builder_;
  std::vector<ValueId> copies_, rounded_;  ///< by value of the old graph
  std::map<DType, std::vector<bool>> exceeding_;
};

}  // namespace

std::vector<DType> node_types(const Graph& graph, const PassContext& context) {
  return HalfNodes(graph, context).types(context.dtype);
}

std::vector<bool> exceeding(const Graph& graph, DType dtype) {
  const float limit = largest_finite(dtype);
  const auto beyond = [limit](double x) { return std::isfinite(x) && std::abs(x) > limit; };
  std::vector<bool> exceeds(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph[id];
    if (value.role != Role::Constant || value.dtype != DType::F32) continue;
    for (int64_t i = 0; i < value.info().elements() && !exceeds[id]; ++i)
      exceeds[id] = beyond(load_element(value.data.data, DType::F32, i));
  }
  for (const Node& node : graph.nodes) {  // in topological order
    bool any =
        node.kind() == OpKind::ConstantOfShape && beyond(node.as<op::ConstantOfShapeAttributes>().value);
    for (size_t i = 0; i < node.inputs.size() && !any; ++i)
      any = node.inputs[i] != kNoValue && exceeds[node.inputs[i]] && passes_on(node, i);
    for (const ValueId output : node.outputs)
      if (output != kNoValue && graph[output].dtype == DType::F32) exceeds[output] = any;
  }
  return exceeds;
}

ValueId narrow(Builder& builder, ValueId value, DType dtype, bool exceeding) {
  if (exceeding) {
    op::ClipAttributes finite;
    finite.minimum = -largest_finite(dtype);
    finite.maximum = largest_finite(dtype);
    value = builder.emit(std::move(finite), {value});
  }
  return builder.cast(value, dtype);
}

Result<Graph> rounded(const Graph& graph, const std::vector<State>& states, const std::vector<DType>& types,
                      const std::function<std::vector<DType>(const Graph& body)>& of_body) {
  Graph result;
  result.symbols = graph.symbols;
  RT_TRY(Rounder(graph, result, states, of_body).run(types));
  return result;
}

}  // namespace librt::compiler
