// precision and half: the float type that each node computes in.
//
// precision: a model in f16 or bf16 is computed in f32. Constants and states keep their 16 bits and are
// widened where they are read. Not exact, but closer to the model in real numbers: intermediate results are
// no longer rounded to 16 bits.
//
// half: the opposite, on request: f32 becomes f16 or bf16 around all GEMM-like operators, up to the nodes
// that the pages mark as precision-sensitive. Not exact. States keep f32, so trained weights are f32 masters.
//
// Inputs and outputs of the graph keep their types in both.
#include <map>

#include "runtime/core/convert_floats.h"
#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/quantize/half.h"

namespace librt::compiler {
namespace {

bool is_narrow(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}

Blob narrowed(const Value& value, DType to) {
  const TensorInfo info{.dtype = to, .shape = value.info().shape};
  std::vector<std::byte> bytes(info.bytes());
  convert_floats(value.data.data, value.dtype, bytes.data(), to, info.elements());
  return Blob::own(std::move(bytes));
}

/// Writes the graph again, value by value, with Casts where a node needs a type that the value does not have.
class Retyper {
 public:
  /// types: what each node computes in.
  Retyper(const Graph& from, Graph& to, const std::vector<State>& states, std::vector<DType> types)
      : from_(from),
        builder_(to, &states),
        types_(std::move(types)),
        producers_(from.values.size(), nullptr),
        made_(from.values.size()) {
    for (const Node& node : from.nodes)
      for (const ValueId output : node.outputs)
        if (output != kNoValue) producers_[output] = &node;
  }

  Status run() {
    Graph& to = builder_.graph();
    to.name = from_.name;
    for (ValueId input : from_.inputs)
      made_[input][from_[input].dtype] =
          builder_.input(from_[input].name, from_[input].dtype, from_[input].dims);
    for (ValueId id = 0; id < from_.values.size(); ++id) copy_source(id);
    for (size_t i = 0; i < from_.nodes.size(); ++i) copy_node(from_.nodes[i], types_[i]);
    for (ValueId output : from_.outputs) {
      const ValueId own = as(output, from_[output].dtype);
      if (own == kNoValue) break;
      to[own].name = from_[output].name;
      builder_.output(own);
    }
    for (const StateUpdate& update : from_.state_updates)
      to.state_updates.push_back({.state = as(update.state, from_[update.state].dtype),
                                  .value = as(update.value, from_[update.value].dtype)});
    return builder_.status();
  }

 private:
  void copy_source(ValueId id) {
    const Value& value = from_[id];
    if (value.role == Role::Intermediate || value.role == Role::Input) return;
    const ValueId own = value.role == Role::Constant ? builder_.constant(value.info(), value.data)
                                                     : builder_.state(value.name, value.state, value.info());
    made_[id][value.dtype] = own;
    builder_.graph()[own].name = value.name;
    builder_.graph()[own].quantization = value.quantization;
  }

  /// The value in a float type; values of other types unchanged.
  ValueId as(ValueId id, DType dtype) {
    if (id == kNoValue || !builder_.status().ok()) return kNoValue;
    auto& made = made_[id];
    const DType own = from_[id].dtype;
    if (!is_exchangeable(own)) return made.empty() ? kNoValue : made.begin()->second;
    if (const auto found = made.find(dtype); found != made.end()) return found->second;
    // A widened value already exists in 16 bits.
    const Node* producer = producers_[id];
    if (producer != nullptr && producer->kind() == OpKind::Cast && own == DType::F32 &&
        from_[producer->inputs[0]].dtype == dtype)
      return made[dtype] = as(producer->inputs[0], dtype);
    ValueId result = kNoValue;
    if (from_[id].role == Role::Constant && own == DType::F32 && !from_[id].quantization) {
      result =
          builder_.constant({.dtype = dtype, .shape = from_[id].info().shape}, narrowed(from_[id], dtype));
      builder_.graph()[result].name = from_[id].name;
    } else {
      result = is_narrow(dtype) ? narrow(builder_, present(id), dtype, exceeds(id, dtype))
                                : builder_.cast(present(id), dtype);
    }
    return made[dtype] = result;
  }
  /// The value in its own type if it is there, else in the one that it was computed in.
  ValueId present(ValueId id) {
    const auto& made = made_[id];
    const auto own = made.find(from_[id].dtype);
    return own != made.end() ? own->second : made.begin()->second;
  }

  /// Whether the value has to be clipped before it becomes narrow: only where it is computed in f32.
  bool exceeds(ValueId id, DType dtype) {
    if (builder_.value(present(id)).dtype != DType::F32) return false;
    std::vector<bool>& all = exceeding_[dtype];
    if (all.empty()) all = exceeding(from_, dtype);
    return all[id];
  }

  static void set_type(uint8_t& attribute, DType dtype) {
    if (is_exchangeable(static_cast<DType>(attribute))) attribute = static_cast<uint8_t>(dtype);
  }

  void copy_node(const Node& node, DType dtype) {
    // Bodies are separate graphs, whose inputs and outputs keep their types too.
    const bool control = ops::is_control(node.kind());
    const auto emit = [&](DType compute) {
      Node copy = node;
      builder_.set_scope(text(node.name, "_cast"));  // the node keeps its name
      for (ValueId& input : copy.inputs) {
        if (input == kNoValue) continue;
        input = control                       ? as(input, from_[input].dtype)
                : copy.kind() == OpKind::Cast ? present(input)
                                              : as(input, compute);
      }
      if (copy.kind() == OpKind::Cast) set_type(copy.as<op::CastAttributes>().to, compute);
      if (copy.kind() == OpKind::DequantizeLinear)
        set_type(copy.as<op::DequantizeLinearAttributes>().to, compute);
      if (copy.kind() == OpKind::ConstantOfShape)
        set_type(copy.as<op::ConstantOfShapeAttributes>().dtype, compute);
      builder_.set_scope(node.name);
      return builder_.emit_node(std::move(copy));
    };
    std::vector<ValueId> outputs = emit(dtype);
    if (is_narrow(dtype) && !builder_.status().ok()) {  // its operands may not have 16 bits
      (void)builder_.take_failure();
      outputs = emit(DType::F32);
    }
    for (size_t i = 0; i < node.outputs.size() && i < outputs.size() && outputs[i] != kNoValue; ++i) {
      made_[node.outputs[i]][builder_.value(outputs[i]).dtype] = outputs[i];
      builder_.graph()[outputs[i]].name = from_[node.outputs[i]].name;
    }
  }

  const Graph& from_;
  Builder builder_;
  std::vector<DType> types_;
  std::vector<const Node*> producers_;  ///< by value of the old graph
  std::map<DType, std::vector<bool>> exceeding_;
  std::vector<std::map<DType, ValueId>> made_;  ///< by value of the old graph: what it is in each type
};

Status retype(Graph& graph, const PassContext& context, std::vector<DType> types) {
  Graph result;
  result.symbols = graph.symbols;
  RT_TRY(Retyper(graph, result, context.states, std::move(types)).run());
  graph = std::move(result);
  return tidy(graph);
}

}  // namespace

Status precision(Graph& graph, const PassContext& context) {
  bool narrow = false;
  for (const Value& value : graph.values) narrow = narrow || is_narrow(value.dtype);
  if (!narrow) return {};
  return retype(graph, context, std::vector<DType>(graph.nodes.size(), DType::F32));
}

Status half(Graph& graph, const PassContext& context) {
  if (context.dtype == DType::F32) return {};
  return retype(graph, context, node_types(graph, context));
}

}  // namespace librt::compiler
