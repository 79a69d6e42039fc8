#include "tools/compiler/quantize/half.h"

#include <fnmatch.h>

#include "runtime/core/convert_floats.h"
#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"

namespace librt::compiler {
namespace {

ops::Arithmetic arithmetic_of(const Node& node) {
  const ops::Page* page = ops::page_of(node.kind());
  return page == nullptr || ops::is_control(node.kind()) ? ops::Arithmetic::PrecisionSensitive
                                                         : page->arithmetic;
}

/// Reading a constant of at least this many elements in 16 bits is worth a Cast after the reader.
constexpr int64_t kLargeConstant = 4096;

class HalfNodes {
 public:
  HalfNodes(const Graph& graph, const PassContext& context)
      : graph_(graph), half_(graph.nodes.size()), readers_(graph.values.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      for (const ValueId input : graph.nodes[id].inputs)
        if (input != kNoValue && is_exchangeable(graph[input].dtype)) readers_[input].push_back(id);
      keep_.push_back(is_kept(graph.nodes[id], context));
    }
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
      if (fnmatch(pattern.c_str(), node.name.c_str(), 0) != 0) continue;
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

/// Writes the graph again, with two Casts where a value is rounded.
class Rounder {
 public:
  Rounder(const Graph& from, Graph& to, const std::vector<State>& states)
      : from_(from), builder_(to, &states), copies_(from.values.size(), kNoValue), rounded_(copies_) {}

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
  ValueId rounded_to(DType type, ValueId value) {
    return builder_.value(value).dtype == DType::F32 ? builder_.cast(builder_.cast(value, type), DType::F32)
                                                     : value;
  }
  void copy_node(const Node& node, DType type) {
    Node copy = node;
    builder_.set_scope(text(node.name, "_rounded"));
    for (ValueId& input : copy.inputs) {
      if (input == kNoValue) continue;
      if (type != DType::F32 && rounded_[input] == kNoValue)
        rounded_[input] = rounded_to(type, copies_[input]);
      input = type == DType::F32 ? copies_[input] : rounded_[input];
    }
    builder_.set_scope(node.name);
    const std::vector<ValueId> outputs = builder_.emit_node(std::move(copy));
    if (!builder_.status().ok()) return;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      copies_[node.outputs[i]] = type == DType::F32 ? outputs[i] : rounded_to(type, outputs[i]);
      if (type != DType::F32) rounded_[node.outputs[i]] = copies_[node.outputs[i]];
    }
  }

  const Graph& from_;
  Builder builder_;
  std::vector<ValueId> copies_, rounded_;  ///< by value of the old graph
};

}  // namespace

std::vector<DType> node_types(const Graph& graph, const PassContext& context) {
  return HalfNodes(graph, context).types(context.dtype);
}

Result<Graph> rounded(const Graph& graph, const std::vector<State>& states, const std::vector<DType>& types) {
  Graph result;
  result.symbols = graph.symbols;
  RT_TRY(Rounder(graph, result, states).run(types));
  return result;
}

}  // namespace librt::compiler
