// Elementwise: a chain of element-wise operators as one node. The body is the chain, written out.
#include "runtime/geometry/elementwise.h"

#include "runtime/geometry/function.h"
#include "runtime/graph/attributes.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_elementwise(const NodeView& node, std::vector<TensorInfo>& outputs) {
  constexpr DTypeSet kTypes{DType::F32, DType::F16, DType::BF16};
  RT_TRY(expect_dtype(node, 0, "x", kTypes));
  for (size_t i = 1; i < node.input_count(); ++i)
    RT_TRY(expect_dtype(node, i, "operand", DTypeSet{DType::Bool, node.dtype(0)}));
  return add_broadcast_output(node, outputs, node.dtype(0));
}

/// The operator of a step; Cast gives `type`.
OpAttributes operator_of_step(OpKind kind, const ElementwiseStep& step, bool other_form, DType type) {
  if (kind == OpKind::Cast) return make_op(op::CastAttributes{.to = static_cast<uint8_t>(type)});
  if (kind == OpKind::Mod) return make_op(op::ModAttributes{.truncated = other_form});
  if (kind == OpKind::GeluGrad) return make_op(op::GeluGradAttributes{.tanh_approximation = other_form});
  if (step.form != ElementwiseStep::Form::Unary) return default_attributes(kind);
  return operator_of({static_cast<Function>(step.function), step.alpha, step.beta});
}

std::vector<ValueId> body_of_elementwise(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::ElementwiseAttributes>();
  const auto program = elementwise_program(attributes, inputs.size());
  if (!program) {
    e.fail(invalid_argument("the steps are not as the schema says"));
    return {};
  }
  std::vector<ValueId> values(inputs.begin(), inputs.end());
  for (size_t i = 0; i < program->all().size(); ++i) {
    const ElementwiseStep& step = program->steps[i];
    std::vector<ValueId> operands;
    for (int k = 0; k < step.operand_count(); ++k)
      operands.push_back(values[step.operands[static_cast<size_t>(k)]]);
    const auto kind = static_cast<OpKind>(attributes.steps[kNumbersPerStep * i]);
    const bool other_form = attributes.parameters[kParametersPerStep * i] != 0;
    values.push_back(
        e.emit_many(operator_of_step(kind, step, other_form, e.value(inputs[0]).dtype), operands, 1)[0]);
  }
  return {values.back()};
}

}  // namespace

RT_PAGE(Elementwise) = {.kind = OpKind::Elementwise,
                        .inputs = {1, kMostElementwiseInputs},
                        .infer = infer_elementwise,
                        .composite = true,
                        .form = Form::Broadcast};
RT_COMPILER_PAGE(Elementwise) = {.body = body_of_elementwise};

Arithmetic arithmetic_of(const Node& node) noexcept {
  if (node.kind() != OpKind::Elementwise) return page_of(node.kind())->arithmetic;
  const auto& steps = node.as<op::ElementwiseAttributes>().steps;
  for (size_t i = 0; i < steps.size(); i += kNumbersPerStep)
    if (const Page* page = page_of(static_cast<OpKind>(steps[i]));
        page != nullptr && page->arithmetic != Arithmetic::Plain)
      return page->arithmetic;
  return Arithmetic::Plain;
}

}  // namespace librt::ops
