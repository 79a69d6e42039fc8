// precision: a model in f16 or bf16 is computed in f32.
//
// Constants and states keep their 16 bits and are widened where they are read; inputs and outputs of the
// graph keep their types. Not exact, but closer to the model in real numbers: intermediate results are no
// longer rounded to 16 bits.
#include <map>

#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/graph_edit.h"
#include "tools/compiler/passes/passes.h"

namespace rt::compiler {
namespace {

bool is_narrow(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}

/// Writes the graph anew, value by value.
class Widener {
 public:
  Widener(const Graph& from, Graph& to, const std::vector<State>& states)
      : from_(from),
        builder_(to, &states),
        wide_(from.values.size(), kNoValue),
        own_(from.values.size(), kNoValue) {}

  Status run() {
    Graph& to = builder_.graph();
    to.name = from_.name;
    for (ValueId input : from_.inputs)
      own_[input] = builder_.input(from_[input].name, from_[input].dtype, from_[input].dims);
    for (ValueId id = 0; id < from_.values.size(); ++id) copy_source(id);
    for (const Node& node : from_.nodes) copy_node(node);
    for (ValueId output : from_.outputs) {
      const ValueId narrow = narrowed(output);
      if (narrow == kNoValue) break;
      to[narrow].name = from_[output].name;
      builder_.output(narrow);
    }
    for (const StateUpdate& update : from_.state_updates)
      to.state_updates.push_back({.state = own_[update.state], .value = narrowed(update.value)});
    return builder_.status();
  }

 private:
  void copy_source(ValueId id) {
    const Value& value = from_[id];
    if (value.role == Role::Constant) own_[id] = builder_.constant(value.info(), value.data);
    if (value.role == Role::State) own_[id] = builder_.state(value.name, value.state, value.info());
    if (value.role == Role::Intermediate || own_[id] == kNoValue) return;
    builder_.graph()[own_[id]].name = value.name;
    builder_.graph()[own_[id]].quantization = value.quantization;
  }

  /// The value in f32 if it is narrow, else as it is.
  ValueId widened(ValueId id) {
    if (id == kNoValue) return kNoValue;
    if (wide_[id] == kNoValue)
      wide_[id] = is_narrow(from_[id].dtype) ? builder_.cast(own_[id], DType::F32) : own_[id];
    return wide_[id];
  }

  /// The value in the type that it has in the model.
  ValueId narrowed(ValueId id) {
    if (id == kNoValue) return kNoValue;
    if (own_[id] == kNoValue)
      own_[id] = is_narrow(from_[id].dtype) ? builder_.cast(wide_[id], from_[id].dtype) : wide_[id];
    return own_[id];
  }

  void copy_node(const Node& node) {
    Node copy = node;
    builder_.set_scope(node.name);
    // Bodies are graphs of their own, whose inputs and outputs keep their types too.
    const bool control = ops::is_control(copy.kind());
    for (ValueId& input : copy.inputs) input = control ? narrowed(input) : widened(input);
    if (copy.kind() == OpKind::Cast && is_narrow(static_cast<DType>(copy.as<op::CastAttributes>().to)))
      copy.as<op::CastAttributes>().to = static_cast<uint8_t>(DType::F32);
    if (copy.kind() == OpKind::DequantizeLinear)
      copy.as<op::DequantizeLinearAttributes>().to = static_cast<uint8_t>(DType::F32);
    if (copy.kind() == OpKind::ConstantOfShape &&
        is_narrow(static_cast<DType>(copy.as<op::ConstantOfShapeAttributes>().dtype)))
      copy.as<op::ConstantOfShapeAttributes>().dtype = static_cast<uint8_t>(DType::F32);
    const std::vector<ValueId> outputs = builder_.emit_node(std::move(copy));
    for (size_t i = 0; i < node.outputs.size() && i < outputs.size() && outputs[i] != kNoValue; ++i) {
      (control ? own_ : wide_)[node.outputs[i]] = outputs[i];
      builder_.graph()[outputs[i]].name = from_[node.outputs[i]].name;
    }
  }

  const Graph& from_;
  Builder builder_;
  std::vector<ValueId> wide_;  ///< by value of the old graph
  std::vector<ValueId> own_;   ///< with the type it has in the old graph
};

}  // namespace

Status precision(Graph& graph, const PassContext& context) {
  bool narrow = false;
  for (const Value& value : graph.values) narrow = narrow || is_narrow(value.dtype);
  if (!narrow) return {};
  Graph wide;
  wide.symbols = graph.symbols;
  RT_TRY(Widener(graph, wide, context.states).run());
  graph = std::move(wide);
  return tidy(graph);
}

}  // namespace rt::compiler
