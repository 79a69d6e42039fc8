// Functions and branches become part of the graph that uses them.
#include <algorithm>

#include "runtime/core/element.h"
#include "tools/rtconvert/onnx/importer.h"

namespace rt::onnx {

namespace {
/// Functions and branches within each other.
constexpr int kMaxDepth = 32;
}  // namespace

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
              .opsets = opsets.empty() ? scope.opsets : &opsets,
              .attributes = &attributes,
              .depth = scope.depth + 1,
              .prefix = name + "/"};
  for (int i = 0; i < function.input_size(); ++i) {
    const auto index = static_cast<size_t>(i);
    // An input that the call leaves out is as absent as "": nodes inside that read it see no input.
    if (index < inputs.size() && inputs[index] != kNoValue)
      bind(inner, function.input(i), inputs[index]);
    else
      inner.absent.insert(function.input(i));
  }
  const size_t first_new = builder_.graph().values.size();
  add_nodes(function.node(), inner);
  std::vector<ValueId> outputs;
  for (int i = 0; i < node.output_size(); ++i) {
    const ValueId* found = inner.find(function.output(i));
    if (found == nullptr && problem_count_ == 0)
      problem(
          text("function '", function.name(), "': nothing produces its output '", function.output(i), "'"));
    outputs.push_back(found != nullptr ? *found : kNoValue);
  }
  bind_outputs(node, scope, outputs, first_new);
}

void Importer::add_if(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  const auto version = scope.opsets->find("");
  const int64_t opset = version != scope.opsets->end() ? version->second : 0;
  std::vector<ValueId> inputs;
  if (!resolve_inputs(node, name, scope, inputs)) return bind_nothing(node, scope);
  const rt_onnx::GraphProto* branches[2] = {};
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "then_branch" && attribute.has_g()) branches[0] = &attribute.g();
    if (attribute.name() == "else_branch" && attribute.has_g()) branches[1] = &attribute.g();
  }
  if (inputs.size() != 1 || inputs[0] == kNoValue || branches[0] == nullptr || branches[1] == nullptr) {
    problem(text("node '", name, "' (If): expected one input, then_branch and else_branch"));
    return bind_nothing(node, scope);
  }
  const auto condition = builder_.known_value(inputs[0]);
  if (!condition || condition->info.elements() != 1 || scope.depth >= kMaxDepth) {
    report_unsupported(node, name, opset, inputs,
                       condition ? "branches lie too deep within each other; flatten the model"
                                 : "the condition is computed from the data of an input; make it a constant");
    return bind_nothing(node, scope);
  }
  const bool taken = load_element(condition->data, condition->info.dtype, 0) != 0;
  rt_onnx::GraphProto branch = *branches[taken ? 0 : 1];
  Scope inner{.parent = &scope,
              .opsets = scope.opsets,
              .attributes = scope.attributes,
              .depth = scope.depth + 1,
              .prefix = name + "/"};
  const size_t first_new = builder_.graph().values.size();
  add_initializers(branch, inner);
  add_nodes(branch.node(), inner);
  std::vector<ValueId> outputs;
  for (int i = 0; i < node.output_size(); ++i) {
    const ValueId* found = i < branch.output_size() ? inner.find(branch.output(i).name()) : nullptr;
    if (found == nullptr && problem_count_ == 0)
      problem(text("node '", name, "' (If): the branch does not produce output ", i));
    outputs.push_back(found != nullptr ? *found : kNoValue);
  }
  bind_outputs(node, scope, outputs, first_new);
}

}  // namespace rt::onnx
