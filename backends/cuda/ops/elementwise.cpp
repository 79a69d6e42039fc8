// Chains of element-wise operators.
#include "kernels/elementwise.h"

#include <optional>

#include "backends/cuda/kernel.h"
#include "backends/cuda/support/index_space.h"
#include "runtime/geometry/elementwise.h"
#include "runtime/geometry/in_place.h"

namespace librt::cuda {
namespace {

static_assert(kMostChainInputs == kMostElementwiseInputs && kMostChainSteps == kMostElementwiseSteps);

/// The form and the function of a step; booleans are 0 and 1 in the kernel.
ChainStep step_of(const ElementwiseStep& from) {
  ChainStep step{
      .function = from.float_function(), .save = kChainSaved, .alpha = from.alpha, .beta = from.beta};
  switch (from.form) {
    case ElementwiseStep::Form::Unary: step.form = ChainStep::Form::Unary; break;
    case ElementwiseStep::Form::Binary: step.form = ChainStep::Form::Binary; break;
    case ElementwiseStep::Form::Compare: step.form = ChainStep::Form::Compare; break;
    case ElementwiseStep::Form::Select: step.form = ChainStep::Form::Select; break;
  }
  return step;
}

/// The steps with their results in registers: the next step reads `previous`, later ones what was saved.
/// False where more results are needed at a time than the kernel saves.
bool assign_registers(const ElementwiseProgram& program, ElementwiseArguments& to) {
  const auto last_reader = program.last_readers();
  const auto inputs = static_cast<size_t>(program.inputs);
  const auto all = program.all();
  std::array<std::optional<size_t>, kChainSaved> saved;  // the step whose result is in it
  for (size_t i = 0; i < all.size(); ++i) {
    ChainStep& step = to.step[i] = step_of(all[i]);
    for (size_t k = 0; k < static_cast<size_t>(all[i].operand_count()); ++k) {
      const size_t value = all[i].operands[k];
      if (value < inputs) {
        step.operands[k] = static_cast<uint8_t>(value);
      } else if (value - inputs + 1 == i) {
        step.operands[k] = kChainPrevious;
      } else {
        for (size_t place = 0; place < saved.size(); ++place)
          if (saved[place] == value - inputs)
            step.operands[k] = static_cast<uint8_t>(kChainPrevious + 1 + place);
      }
    }
    for (auto& place : saved)
      if (place && last_reader[*place] <= i) place.reset();
    if (last_reader[i] <= i + 1) continue;
    size_t place = 0;
    while (place < saved.size() && saved[place]) ++place;
    if (place == saved.size()) return false;
    saved[place] = i;
    step.save = static_cast<uint8_t>(place);
  }
  return true;
}

Result<ElementwiseArguments> arguments_of(const NodeView& node) {
  RT_ASSIGN(const ElementwiseProgram program, elementwise_program(node));
  ElementwiseArguments arguments{};
  if (!assign_registers(program, arguments))
    return unsupported("more than ", kChainSaved, " results of steps are needed later");
  std::array<Shape, kMostElementwiseInputs> shapes;
  for (size_t i = 0; i < node.input_count(); ++i) {
    shapes[i] = node.shape(i);
    arguments.is_bool[i] = node.dtype(i) == DType::Bool;
  }
  arguments.space = index_space(broadcast_plan<kMostElementwiseInputs>(node.output(0).shape, shapes));
  arguments.type = element_type(node.dtype(0));
  arguments.width = choose_width(arguments.space, node.dtype(0));
  arguments.count = node.output(0).elements();
  arguments.inputs = program.inputs;
  arguments.steps = program.count;
  return arguments;
}

Status supports(const CudaDevice&, const NodeView& node) {
  return arguments_of(node).status();
}

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const ElementwiseArguments arguments, arguments_of(node));
  Requirements requirements;
  if (const auto operand = operand_like_result(node)) requirements = in_place(*operand);
  return make_kernel(
      [arguments](const Call& call) {
        ElementwiseArguments a = arguments;
        for (int i = 0; i < a.inputs; ++i) a.x[i] = call.in(static_cast<size_t>(i));
        a.y = call.out();
        return elementwise(a, call.stream);
      },
      requirements);
}

constexpr DTypeSet kTypes{DType::F32, DType::F16, DType::BF16};

}  // namespace

std::span<const KernelRow> rows_elementwise();
std::span<const KernelRow> rows_elementwise() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::Elementwise, "elementwise", kTypes)};
  return kRows;
}

}  // namespace librt::cuda
