// Optimizer steps in one pass, in place. Learning rate and step are tensors: recorded work never changes.
#include "kernels/optimizer.h"

#include <cmath>

#include "backends/cuda/kernel.h"
#include "runtime/backend/state_pairs.h"

namespace librt::cuda {
namespace {

static_assert(static_cast<int>(StepRule::Lion) == static_cast<int>(op::StepRule::Lion) &&
              static_cast<int>(StepRule::Adadelta) == static_cast<int>(op::StepRule::Adadelta));
static_assert(kMaxStates == kMostStepStates);

Status supports_step(const CudaDevice&, const NodeView& node) {
  return states_are_f32(node);
}

Status supports_blockwise(const CudaDevice&, const NodeView& node) {
  const int64_t block = node.as<op::BlockwiseStepAttributes>().block_size;
  if (block <= kLargestStateBlock && block % 4 == 0) return {};
  return unsupported("expected blocks of a multiple of 4 elements up to ", kLargestStateBlock, ", found ",
                     block);
}

/// One step, with f32 states or block-quantized states.
struct Step {
  StepForm form;
  StepArguments arguments;            ///< without addresses
  size_t direction = 0, squares = 0;  ///< Lamb: in the scratch
  StatePairs pairs;

  explicit Step(const NodeView& node) : form(step_form(node)), pairs(form) {
    const auto beta1 = static_cast<double>(form.beta1), beta2 = static_cast<double>(form.beta2);
    arguments = {.rule = static_cast<StepRule>(form.rule),
                 .variant = form.variant,
                 .type = element_type(node.dtype(0)),
                 .count = node.input(0).elements(),
                 .beta1 = form.beta1,
                 .beta2 = form.beta2,
                 .one_minus_beta1 = static_cast<float>(1 - beta1),
                 .one_minus_beta2 = static_cast<float>(1 - beta2),
                 .log_beta1 = static_cast<float>(std::log(beta1)),
                 .log_beta2 = static_cast<float>(std::log(beta2)),
                 .share = form.share,
                 .momentum = form.momentum,
                 .epsilon = form.epsilon,
                 .weight_decay = form.weight_decay};
    for (size_t i = 0; i < kMostStepStates; ++i) arguments.has[i] = form.has(i);
  }

  Requirements requirements() {
    Requirements requirements = in_place();
    requirements.more_in_place = pairs.span();
    if (form.rule == op::StepRule::Lamb) {
      direction = reserve_scratch(requirements, static_cast<size_t>(arguments.count) * sizeof(float));
      squares = reserve_scratch(requirements, 2 * kMaxStepBlocks * sizeof(float));
    }
    return requirements;
  }

  cudaError_t operator()(const Call& call) const {
    StepArguments to = arguments;
    to.parameter = call.in(0);
    to.grad = call.in(1);
    to.new_parameter = call.out(0);
    to.learning_rate = operand<float>(call, form.learning_rate);
    to.step = operand<int32_t>(call, form.step);
    to.gradient_scale = operand<float>(call, form.gradient_scale);
    to.skip = operand<bool>(call, form.skip);
    if (form.rule == op::StepRule::Lamb) {
      to.direction = call.scratch<float>(direction);
      to.squares = call.scratch<float>(squares);
    }
    return form.block_size > 0 ? blockwise_step(to, blocks(call), call.stream)
                               : optimizer_step(to, states(call), call.stream);
  }

 private:
  template <class T>
  static const T* operand(const Call& call, int8_t i) noexcept {
    return i < 0 ? nullptr : call.in<T>(static_cast<size_t>(i));
  }
  StepStates states(const Call& call) const {
    StepStates states;
    for (size_t i = 0; i < kMostStepStates; ++i) {
      if (!form.has(i)) continue;
      states.now[i] = call.in<float>(form.states[i].input);
      states.next[i] = call.out<float>(form.states[i].output);
    }
    return states;
  }
  BlockStates blocks(const Call& call) const {
    BlockStates states;
    states.size = static_cast<int>(form.block_size);
    for (size_t i = 0; i < kMostStepStates; ++i) {
      const StepForm::State& state = form.states[i];
      if (!state.present) continue;
      states.quantized[i] = call.in<uint8_t>(state.input);
      states.scales[i] = call.in<float>(state.scales);
      states.next_quantized[i] = call.out<uint8_t>(state.output);
      states.next_scales[i] = call.out<float>(state.next_scales);
      states.negative[i] = state.negative;
      const size_t book = state.negative ? 0 : 1;
      states.codebooks[book] = call.in<float>(state.codebook);
      states.levels[book] = state.levels;
    }
    return states;
  }
};

Result<KernelPtr> create_step(CudaDevice&, const NodeView& node) {
  const auto step = std::make_shared<Step>(node);
  const Requirements requirements = step->requirements();
  return make_kernel([step](const Call& call) { return (*step)(call); }, requirements);
}

}  // namespace

std::span<const KernelRow> rows_optimizer();
std::span<const KernelRow> rows_optimizer() {
  static constexpr KernelRow kRows[] = {
      row<create_step, supports_step>(OpKind::SgdStep, "sgd_step", kShortFloats),
      row<create_step, supports_step>(OpKind::AdamStep, "adam_step", kShortFloats),
      row<create_step, supports_step>(OpKind::RmsPropStep, "rms_prop_step", kShortFloats),
      row<create_step, supports_step>(OpKind::AdagradStep, "adagrad_step", kShortFloats),
      row<create_step, supports_step>(OpKind::AdadeltaStep, "adadelta_step", kShortFloats),
      row<create_step, supports_step>(OpKind::LambStep, "lamb_step", kShortFloats),
      row<create_step, supports_step>(OpKind::LionStep, "lion_step", kShortFloats),
      row<create_step, supports_blockwise>(OpKind::BlockwiseStep, "blockwise_step", kShortFloats),
  };
  return kRows;
}

}  // namespace librt::cuda
