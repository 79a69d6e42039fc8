// Functions become part of the graph that uses them.
#include <algorithm>

#include "tools/onnx/importer.h"

namespace librt::onnx {

void Importer::add_call(const rt_onnx::FunctionProto& function, const rt_onnx::NodeProto& node,
                        const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  const bool complete = resolve_inputs(node, name, scope, inputs);
  if (scope.depth >= kMaxDepth)
    problem(text("function '", function.name(), "': more than ", kMaxDepth, " calls within each other"));
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    problem(text("node '", name, "' passes ", node.input_size(), " inputs and ", node.output_size(),
                 " outputs to function '", function.name(), "', which has ", function.input_size(), " and ",
                 function.output_size()));
  if (!complete || problem_count_ > 0) return bind_nothing(node, scope);

  Opsets opsets;
  for (const auto& import : function.opset_import())
    opsets[import.domain() == "ai.onnx" ? "" : import.domain()] = import.version();
  Attributes attributes;
  for (const auto& attribute : function.attribute_proto()) attributes[attribute.name()] = &attribute;
  for (const auto& attribute : node.attribute()) {
    const auto& names = function.attribute();
    if (!attributes.contains(attribute.name()) &&
        std::find(names.begin(), names.end(), attribute.name()) == names.end())
      problem(
          text("node '", name, "': function '", function.name(), "' has no attribute ", attribute.name()));
    attributes[attribute.name()] = &attribute;
  }
  Scope inner{.parent = nullptr,
              .frame = frame_,
              .opsets = opsets.empty() ? scope.opsets : &opsets,
              .attributes = &attributes,
              .depth = scope.depth + 1,
              .prefix = name + "/"};
  for (int i = 0; i < function.input_size(); ++i) {
    const auto index = static_cast<size_t>(i);
    // An input that the call omits is absent, like "": nodes in the function that read it see no input.
    if (index < inputs.size() && inputs[index] != kNoValue)
      bind(inner, function.input(i), inputs[index]);
    else
      inner.absent.insert(function.input(i));
  }
  const size_t first_new = builder().graph().values.size();
  add_nodes(function.node(), inner);
  std::vector<ValueId> outputs;
  for (int i = 0; i < node.output_size(); ++i) {
    const auto found = lookup(inner, function.output(i));
    if (!found && problem_count_ == 0)
      problem(
          text("function '", function.name(), "': nothing produces its output '", function.output(i), "'"));
    outputs.push_back(found.value_or(kNoValue));
  }
  bind_outputs(node, scope, outputs, first_new);
}

}  // namespace librt::onnx
