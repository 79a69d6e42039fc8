// Chains of element-wise operators: one dispatch, whose steps are specialization constants.
#include "runtime/geometry/elementwise.h"

#include <algorithm>
#include <bit>

#include "backends/vulkan/kernel.h"
#include "runtime/geometry/in_place.h"

namespace librt::vulkan {
namespace {

/// Of the shader's push constants.
constexpr size_t kAxes = 3;

/// The step's specialization constant; inputs are operands 0 to 5, results those after them. Booleans are 0
/// and 1 in the shader.
uint32_t code_of(const ElementwiseStep& step, int inputs) {
  uint32_t code = static_cast<uint32_t>(step.form) | static_cast<uint32_t>(step.float_function()) << 4;
  for (size_t k = 0; k < 3; ++k) {
    const int value = step.operands[k];
    code |= static_cast<uint32_t>(value < inputs ? value : value - inputs + kMostElementwiseInputs)
            << (12 + 4 * k);
  }
  return code;
}

/// Whether the step is one of those in apply_short_function() and apply_short_binary().
bool is_short(const ElementwiseStep& step) {
  if (step.form == ElementwiseStep::Form::Unary) {
    switch (static_cast<Function>(step.function)) {
      case Function::Identity:
      case Function::Relu:
      case Function::Clip:
      case Function::HardSwish:
      case Function::LeakyRelu:
      case Function::HardSigmoid:
      case Function::Abs:
      case Function::Neg:
      case Function::Sqrt:
      case Function::Reciprocal:
      case Function::Floor:
      case Function::Ceil:
      case Function::Round:
      case Function::Sign:
      case Function::Not: return true;
      default: return false;
    }
  }
  if (step.form != ElementwiseStep::Form::Binary) return true;
  switch (static_cast<BinaryFunction>(step.function)) {
    case BinaryFunction::Add:
    case BinaryFunction::Sub:
    case BinaryFunction::Mul:
    case BinaryFunction::Div:
    case BinaryFunction::Minimum:
    case BinaryFunction::Maximum:
    case BinaryFunction::ReluGrad:
    case BinaryFunction::And:
    case BinaryFunction::Or: return true;
    default: return false;
  }
}

bool is_short(const ElementwiseProgram& program) {
  const auto steps = program.all();
  return std::ranges::all_of(steps, [](const ElementwiseStep& step) { return is_short(step); });
}

Shader shader_of(const ElementwiseProgram& program, DType dtype) {
  const bool wide = dtype == DType::F32;
  if (is_short(program)) return wide ? Shader::elementwise_short : Shader::elementwise_short_halves;
  if (program.count <= 3) return wide ? Shader::elementwise_3 : Shader::elementwise_3_halves;
  return wide ? Shader::elementwise_8 : Shader::elementwise_8_halves;
}

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(storable(device, node.dtype(0)));
  if (const size_t rank = broadcast_space(node).rank(); rank > kAxes)
    return unsupported("broadcasting needs ", rank, " axes after collapsing, ", kAxes, " are supported");
  return elementwise_program(node).status();
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const ElementwiseProgram steps, elementwise_program(node));
  StridedSpace space = broadcast_space(node);
  // Whole tensors have tail padding, so a single axis needs no multiple of four where nothing is repeated.
  bool padded = space.rank() == 1;
  for (const auto& strides : space.strides) padded = padded && strides[0] <= 1;
  const bool wide = is_short(steps) && (padded || in_groups(space, 4, true));
  uint32_t splat = 0, bools = 0;
  for (size_t i = 0; i < space.strides.size(); ++i) {
    if (node.dtype(i) == DType::Bool) bools |= 1u << i;
    auto& strides = space.strides[i];
    if (strides.back() == 0)
      splat |= 1u << i;
    else if (wide)
      for (size_t axis = 0; axis + 1 < strides.size(); ++axis) strides[axis] /= 4;
  }
  if (wide) space.extents.back() = ceil_div(space.extents.back(), 4);
  const int64_t count = node.output(0).elements() == 0 ? 0 : space.elements();
  const DType dtype = node.dtype(0);
  auto program = std::make_unique<Program>("elementwise");
  Step& step = program->dispatch_each(shader_of(steps, dtype), count, cast(device).plan().elementwise_lanes);
  step.spec(space.rank())
      .spec(wide ? 4 : 1)
      .spec(node.input_count())
      .spec(splat)
      .spec(bools)
      .spec(static_cast<uint64_t>(steps.count));
  for (const ElementwiseStep& each : steps.steps)
    step.spec(code_of(each, steps.inputs))
        .spec(std::bit_cast<uint32_t>(each.alpha))
        .spec(std::bit_cast<uint32_t>(each.beta));
  step.spec(element_of(dtype));
  step.push(count);
  for (size_t axis = 0; axis < kAxes; ++axis) step.push(axis < space.rank() ? space.extents[axis] : 1);
  for (size_t i = 0; i < kMostElementwiseInputs; ++i)
    for (size_t axis = 0; axis < kAxes; ++axis)
      step.push(i < space.strides.size() && axis < space.rank() ? space.strides[i][axis] : 0);
  for (size_t i = 0; i < kMostElementwiseInputs; ++i)
    step.read(static_cast<uint32_t>(i), in(i < node.input_count() ? i : 0));
  step.write(kMostElementwiseInputs, out(0));
  if (const auto operand = operand_like_result(node)) program->in_place(*operand);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::Elementwise, "elementwise", DTypeSet{DType::F32, DType::F16, DType::BF16}),
};

}  // namespace

std::span<const KernelRow> rows_elementwise() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
