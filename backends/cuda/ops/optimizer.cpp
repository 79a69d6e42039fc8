// Optimizer steps in one pass, in place; adjacent nodes of one form are one launch. Learning rate and step
// are tensors: recorded work never changes.
#include "kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

/// The weights of one form that are updated by one launch.
class StepTask final : public Task {
 public:
  StepTask(const StepArguments& arguments, const BlockForm& blocks, bool quantized)
      : arguments_(arguments), blocks_(blocks), quantized_(quantized) {}

  void add(int64_t count, std::span<void* const> operands, bool in_place) {
    table_.stride = static_cast<int>(operands.size());
    table_.results = in_place ? 0 : table_.stride / 2;
    table_.add(count, quantized_ ? thread_blocks_of_step(count, blocks_) : thread_blocks_of_step(count),
               operands.data());
  }
  cudaError_t run(cudaStream_t stream) noexcept override {
    try {
      return quantized_ ? blockwise_step(arguments_, blocks_, table_, stream)
                        : optimizer_step(arguments_, table_, stream);
    } catch (...) {  // host memory of the emulated device
      return cudaErrorMemoryAllocation;
    }
  }
  /// `later` has one weight. Its scratch is not used then, which has room for Lamb's sums of all weights.
  bool join(Task& later) override {
    const auto* other = dynamic_cast<const StepTask*>(&later);
    if (other == nullptr || quantized_ != other->quantized_) return false;
    if (arguments_.rule == StepRule::Lamb &&
        (quantized_ || table_.first_block[table_.weights] + other->table_.first_block[1] > kMaxLambBlocks))
      return false;
    StepArguments arguments = other->arguments_;
    arguments.squares = arguments_.squares;
    if (arguments_ != arguments || blocks_ != other->blocks_ || table_.stride != other->table_.stride ||
        table_.results != other->table_.results || table_.full())
      return false;
    table_.add(other->table_.count[0], other->table_.first_block[1], other->table_.pointers);
    return true;
  }

 private:
  StepArguments arguments_;
  BlockForm blocks_;
  bool quantized_;
  StepTable table_;
};

/// One step, with f32 states or block-quantized states.
class StepKernel final : public Kernel {
 public:
  explicit StepKernel(const NodeView& node)
      : form_(step_form(node)), count_(node.input(0).elements()), pairs_(form_) {
    const auto beta1 = static_cast<double>(form_.beta1), beta2 = static_cast<double>(form_.beta2);
    arguments_ = {.rule = static_cast<StepRule>(form_.rule),
                  .variant = form_.variant,
                  .type = element_type(node.dtype(0)),
                  .beta1 = form_.beta1,
                  .beta2 = form_.beta2,
                  .one_minus_beta1 = static_cast<float>(1 - beta1),
                  .one_minus_beta2 = static_cast<float>(1 - beta2),
                  .log_beta1 = static_cast<float>(std::log(beta1)),
                  .log_beta2 = static_cast<float>(std::log(beta2)),
                  .share = form_.share,
                  .momentum = form_.momentum,
                  .epsilon = form_.epsilon,
                  .weight_decay = form_.weight_decay};
    for (size_t i = 0; i < kMostStepStates; ++i) arguments_.has[i] = form_.has(i);
    requirements_ = in_place();
    if (form_.rule == op::StepRule::Lamb) {
      const bool quantized = form_.block_size > 0;
      if (quantized) direction_ = reserve_scratch(requirements_, static_cast<size_t>(count_) * sizeof(float));
      squares_ =
          reserve_scratch(requirements_, 2 * (quantized ? kMaxStepBlocks : kMaxLambBlocks) * sizeof(float));
    }
  }

  Requirements requirements() const noexcept override {
    Requirements requirements = requirements_;
    requirements.more_in_place = pairs_.span();
    return requirements;
  }

  Status record(CommandList& list, const Bindings& bindings) noexcept override {
    try {
      auto& commands = static_cast<CudaCommands&>(list);
      StepArguments to = arguments_;
      const auto scalar = [&]<class T>(const T*& address, int8_t i) {
        if (i >= 0)
          address = reinterpret_cast<const T*>(commands.address_of(bindings.inputs[static_cast<size_t>(i)]));
      };
      scalar(to.learning_rate, form_.learning_rate);
      scalar(to.step, form_.step);
      scalar(to.gradient_scale, form_.gradient_scale);
      scalar(to.skip, form_.skip);
      if (form_.rule == op::StepRule::Lamb) {
        std::byte* const scratch = commands.address_of(bindings.scratch);
        if (form_.block_size > 0) to.direction = reinterpret_cast<float*>(scratch + direction_);
        to.squares = reinterpret_cast<float*>(scratch + squares_);
      }
      bool in_place = true;
      const std::vector<void*> operands = operands_of(commands, bindings, in_place);
      auto task = std::make_unique<StepTask>(to, blocks(commands, bindings), form_.block_size > 0);
      task->add(count_, operands, in_place);
      return commands.add_joining(std::move(task), bindings);
    } catch (...) {
      return caught_exception("recording an optimizer step");
    }
  }

 private:
  /// As in StepTable.
  std::vector<void*> operands_of(const CudaCommands& commands, const Bindings& bindings,
                                 bool& in_place) const {
    std::vector<void*> now, next;
    const auto add = [&](size_t input, size_t output) {
      now.push_back(commands.address_of(bindings.inputs[input]));
      next.push_back(commands.address_of(bindings.outputs[output]));
    };
    add(0, 0);
    now.push_back(commands.address_of(bindings.inputs[1]));
    next.push_back(nullptr);
    for (size_t i = 0; i < kMostStepStates; ++i) {
      const StepForm::State& state = form_.states[i];
      const bool last =
          std::none_of(form_.states.begin() + static_cast<std::ptrdiff_t>(i), form_.states.end(),
                       [](const StepForm::State& other) { return other.present; });
      if (last) break;
      if (state.present) {
        add(state.input, state.output);
        if (form_.block_size > 0) add(state.scales, state.next_scales);
        continue;
      }
      for (std::vector<void*>* list : {&now, &next})
        list->resize(list->size() + (form_.block_size > 0 ? 2 : 1));
    }
    in_place = true;
    for (size_t i = 0; i < now.size(); ++i) in_place = in_place && (i == 1 || now[i] == next[i]);
    if (!in_place) now.insert(now.end(), next.begin(), next.end());
    return now;
  }

  BlockForm blocks(const CudaCommands& commands, const Bindings& bindings) const {
    BlockForm blocks;
    if (form_.block_size == 0) return blocks;
    blocks.size = static_cast<int>(form_.block_size);
    for (size_t i = 0; i < kMostStepStates; ++i) {
      const StepForm::State& state = form_.states[i];
      if (!state.present) continue;
      blocks.negative[i] = state.negative;
      const size_t book = state.negative ? 0 : 1;
      blocks.codebooks[book] =
          reinterpret_cast<const float*>(commands.address_of(bindings.inputs[state.codebook]));
      blocks.levels[book] = state.levels;
    }
    return blocks;
  }

  StepForm form_;
  int64_t count_;
  StatePairs pairs_;
  StepArguments arguments_;             ///< without addresses
  Requirements requirements_;           ///< without more_in_place
  size_t direction_ = 0, squares_ = 0;  ///< of Lamb, in the scratch
};

Result<KernelPtr> create_step(CudaDevice&, const NodeView& node) {
  return KernelPtr(std::make_unique<StepKernel>(node));
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
