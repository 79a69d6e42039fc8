#include "runtime/geometry/elementwise.h"

#include <utility>

#include "runtime/geometry/function.h"
#include "runtime/graph/in_build.h"

namespace librt {
namespace {

/// Not, And and Or.
bool is_logic(const ElementwiseStep& step) noexcept {
  using Form = ElementwiseStep::Form;
  if (step.form == Form::Unary) return static_cast<Function>(step.function) == Function::Not;
  const auto function = static_cast<BinaryFunction>(step.function);
  return step.form == Form::Binary && (function == BinaryFunction::And || function == BinaryFunction::Or);
}

/// As the schema has them for a step.
std::pair<float, float> parameters_of(const Node& node) noexcept {
  if (has_other_form(node)) return {1.0f, 0.0f};
  const FunctionCall call = function_call(node);
  return {call.alpha, call.beta};
}

/// alpha, beta: the parameters in the schema.
std::optional<ElementwiseStep> step_of(OpKind kind, float alpha, float beta) noexcept {
  using Form = ElementwiseStep::Form;
  const auto step = [](Form form, auto function) {
    return ElementwiseStep{.form = form, .function = static_cast<uint8_t>(function)};
  };
  const bool other_form = alpha != 0;
  if (kind == OpKind::Cast) return step(Form::Unary, Function::Identity);
  if (kind == OpKind::Where) return step(Form::Select, 0);
  if (kind == OpKind::Gelu) return step(Form::Unary, other_form ? Function::GeluTanh : Function::Gelu);
  if (const Function function = function_of(kind); function != Function::Identity) {
    ElementwiseStep unary = step(Form::Unary, function);
    unary.alpha = alpha;
    unary.beta = beta;
    return unary;
  }
  if (const auto relation = compare_function(kind)) return step(Form::Compare, *relation);
  const auto function = binary_function(kind, other_form);
  if (!function || *function > BinaryFunction::Or) return std::nullopt;
  return step(Form::Binary, *function);
}

/// Whether kernels of this build have the step's function.
bool is_in_build(const ElementwiseStep& step) noexcept {
  using Form = ElementwiseStep::Form;
  switch (step.form) {
    case Form::Unary: return in_build(static_cast<Function>(step.function));
    case Form::Binary: return in_build(static_cast<BinaryFunction>(step.function));
    case Form::Compare: return in_build(static_cast<CompareFunction>(step.function));
    case Form::Select: break;
  }
  return true;
}

}  // namespace

bool ElementwiseStep::gives_bool() const noexcept {
  return form == Form::Compare || is_logic(*this);
}

bool ElementwiseStep::takes_bool(int k) const noexcept {
  if (form == Form::Unary && static_cast<Function>(function) == Function::Identity) return true;
  return is_logic(*this) || (form == Form::Select && k == 0);
}

uint8_t ElementwiseStep::float_function() const noexcept {
  if (form != Form::Binary || !is_logic(*this)) return function;
  return static_cast<uint8_t>(static_cast<BinaryFunction>(function) == BinaryFunction::And
                                  ? BinaryFunction::Minimum
                                  : BinaryFunction::Maximum);
}

std::array<size_t, kMostElementwiseSteps> ElementwiseProgram::last_readers() const noexcept {
  std::array<size_t, kMostElementwiseSteps> last{};
  for (size_t i = 0; i < all().size(); ++i)
    for (int k = 0; k < steps[i].operand_count(); ++k)
      if (const int value = steps[i].operands[static_cast<size_t>(k)]; value >= inputs)
        last[static_cast<size_t>(value - inputs)] = i;
  return last;
}

std::optional<ElementwiseStep> elementwise_step(const Node& node) noexcept {
  const auto [alpha, beta] = parameters_of(node);
  return step_of(node.kind(), alpha, beta);
}

std::optional<ElementwiseProgram> elementwise_program(const op::ElementwiseAttributes& attributes,
                                                      size_t inputs) noexcept {
  const std::vector<int64_t>& numbers = attributes.steps;
  const size_t count = numbers.size() / kNumbersPerStep;
  if (inputs == 0 || inputs > kMostElementwiseInputs || count == 0 || count > kMostElementwiseSteps ||
      numbers.size() % kNumbersPerStep != 0 || attributes.parameters.size() != count * kParametersPerStep)
    return std::nullopt;
  ElementwiseProgram program{.inputs = static_cast<int>(inputs), .count = static_cast<int>(count)};
  for (size_t i = 0; i < count; ++i) {
    const int64_t* step = &numbers[i * kNumbersPerStep];
    if (step[0] <= 0 || step[0] >= kOpCount) return std::nullopt;
    const float* parameters = &attributes.parameters[i * kParametersPerStep];
    const auto decoded = step_of(static_cast<OpKind>(step[0]), parameters[0], parameters[1]);
    if (!decoded) return std::nullopt;
    program.steps[i] = *decoded;
    for (int k = 0; k < decoded->operand_count(); ++k) {
      if (step[1 + k] < 0 || step[1 + k] >= static_cast<int64_t>(inputs + i)) return std::nullopt;
      program.steps[i].operands[static_cast<size_t>(k)] = static_cast<uint8_t>(step[1 + k]);
    }
  }
  return program;
}

Result<ElementwiseProgram> elementwise_program(const NodeView& node) {
  const auto program = elementwise_program(node.as<op::ElementwiseAttributes>(), node.input_count());
  if (!program) return invalid_argument("the steps are not as the schema says");
  std::vector<bool> is_bool;
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) return invalid_argument("operand ", i, " is absent");
    is_bool.push_back(node.dtype(i) == DType::Bool);
  }
  for (const ElementwiseStep& step : program->all()) {
    if (build::kTrimmed && !is_in_build(step)) return not_in_build("a step's function");
    for (int k = 0; k < step.operand_count(); ++k)
      if (is_bool[step.operands[static_cast<size_t>(k)]] != step.takes_bool(k))
        return invalid_argument("a step has an operand of another type than it takes");
    is_bool.push_back(step.gives_bool());
  }
  if (is_bool.back()) return invalid_argument("the last step gives a boolean");
  return *program;
}

void append_step(op::ElementwiseAttributes& attributes, const Node& node,
                 const std::array<int64_t, 3>& operands) {
  attributes.steps.push_back(static_cast<int64_t>(node.kind()));
  attributes.steps.insert(attributes.steps.end(), operands.begin(), operands.end());
  const auto [alpha, beta] = parameters_of(node);
  attributes.parameters.push_back(alpha);
  attributes.parameters.push_back(beta);
}

}  // namespace librt
