// Optimizer steps in one pass, in place. Learning rate, step, scale and skip are tensors: recorded work never
// changes. States in 8 bits are made numbers, stepped and made codes again block by block, in the first
// cache.
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "backends/cpu/blocks.h"
#include "backends/cpu/kernel.h"
#include "runtime/graph/optimizer_step.h"

namespace rt::cpu {
namespace {

/// Where the operands of a step that are no states stand among its inputs; -1: none.
struct StepLayout {
  StepFunction function;
  int8_t learning_rate, step, gradient_scale, skip;
};

StepLayout layout_of(OpKind kind) {
  switch (kind) {
    case OpKind::SgdStep: return {StepFunction::Sgd, 3, 4, 5, 6};
    case OpKind::AdamStep: return {StepFunction::Adam, 5, 4, 7, 8};
    case OpKind::RmsPropStep: return {StepFunction::RmsProp, 3, -1, 6, 7};
    case OpKind::AdagradStep: return {StepFunction::Adagrad, 3, -1, 4, 5};
    case OpKind::AdadeltaStep: return {StepFunction::Adadelta, 4, -1, 5, 6};
    case OpKind::LambStep: return {StepFunction::LambDirection, 5, 4, 6, 7};
    default: return {StepFunction::Lion, 3, -1, 4, 5};
  }
}

Status supports_step(const CpuDevice&, const NodeView& node) {
  for (const StepState& state : step_states(node.kind()))
    if (node.has(state.operand) && node.dtype(state.operand) != DType::F32)
      return unsupported("states must be f32, not ", name_of(node.dtype(state.operand)));
  return {};
}

/// Blocks are worked on in memory of the stack.
constexpr int64_t kLargestBlock = 1024;

Status supports_blockwise(const CpuDevice&, const NodeView& node) {
  const int64_t block = node.as<op::BlockwiseStepAttributes>().block_size;
  if (block <= kLargestBlock) return {};
  return unsupported("blocks of at most ", kLargestBlock, " elements, not ", block);
}

/// Which states there are, where they stand, and where their next values: codes, then scales.
struct StepStates {
  struct State {
    bool present = false, negative = true;
    uint8_t input = 0, output = 0;
    uint8_t scales = 0, next_scales = 0;  ///< of states in blocks
    uint8_t codebook = 0;
    int64_t levels = 0;
  };
  std::array<State, kMostStepStates> states;
  std::array<InPlace, 2 * kMostStepStates> pairs;  ///< of states and results
  size_t pair_count = 0;

  StepStates(OpKind step, const NodeView& node, bool blockwise) {
    const std::span<const StepState> all = step_states(step);
    uint8_t count = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      State& state = states[i];
      state.input = static_cast<uint8_t>(blockwise ? blockwise_operand(all[i].operand) : all[i].operand);
      state.present = node.has(state.input);
      if (!state.present) continue;
      state.output = ++count;
      state.negative = all[i].negative;
      pairs[pair_count++] = {state.input, state.output};
    }
    for (size_t i = 0; blockwise && i < all.size(); ++i) {
      State& state = states[i];
      if (!state.present) continue;
      state.scales = static_cast<uint8_t>(kFirstScales + i);
      state.next_scales = static_cast<uint8_t>(state.output + count);
      state.codebook = static_cast<uint8_t>(codebook_operand(all[i]));
      state.levels = node.input(state.codebook).elements();
      pairs[pair_count++] = {state.scales, state.next_scales};
    }
  }
};

/// The attributes of a step; what is read at every run is left at 0.
StepNumbers numbers_of(const Node& node) {
  StepNumbers n{};
  switch (node.kind()) {
    case OpKind::SgdStep: {
      const auto& step = node.as<op::SgdStepAttributes>();
      n.keep1 = step.momentum;
      n.share = 1 - step.dampening;
      n.weight_decay = step.weight_decay;
      n.variant = step.nesterov;
      break;
    }
    case OpKind::AdamStep: {
      const auto& step = node.as<op::AdamStepAttributes>();
      n.keep1 = step.beta1, n.keep2 = step.beta2;
      n.epsilon = step.epsilon;
      n.weight_decay = step.weight_decay;
      n.variant = step.decoupled;
      break;
    }
    case OpKind::RmsPropStep: {
      const auto& step = node.as<op::RmsPropStepAttributes>();
      n.keep1 = step.alpha;
      n.epsilon = step.epsilon;
      n.momentum = step.momentum;
      n.weight_decay = step.weight_decay;
      break;
    }
    case OpKind::AdagradStep: {
      const auto& step = node.as<op::AdagradStepAttributes>();
      n.epsilon = step.epsilon;
      n.weight_decay = step.weight_decay;
      break;
    }
    case OpKind::AdadeltaStep: {
      const auto& step = node.as<op::AdadeltaStepAttributes>();
      n.keep1 = step.rho;
      n.epsilon = step.epsilon;
      n.weight_decay = step.weight_decay;
      break;
    }
    case OpKind::LambStep: {
      const auto& step = node.as<op::LambStepAttributes>();
      n.keep1 = step.beta1, n.keep2 = step.beta2;
      n.epsilon = step.epsilon;
      n.weight_decay = step.weight_decay;
      break;
    }
    default: {
      const auto& step = node.as<op::LionStepAttributes>();
      n.keep1 = step.beta1, n.keep2 = step.beta2;
      n.weight_decay = step.weight_decay;
    }
  }
  return n;
}

/// One step at run time.
class OptimizerStep {
 public:
  /// step: the node's operator, or the one that it makes in blocks of block_size elements (else 0).
  OptimizerStep(const Simd& simd, const Node& step, const NodeView& node, int64_t block_size)
      : simd_(&simd),
        layout_(layout_of(step.kind())),
        fixed_(numbers_of(step)),
        count_(node.input(0).elements()),
        block_size_(block_size),
        states_(step.kind(), node, block_size > 0) {
    if (block_size == 0) return;
    for (int8_t* operand : {&layout_.learning_rate, &layout_.step, &layout_.gradient_scale, &layout_.skip})
      if (*operand >= 0) *operand = static_cast<int8_t>(blockwise_operand(static_cast<size_t>(*operand)));
  }

  /// Pairs of states and results behind the parameter's.
  std::span<const InPlace> pairs() const { return std::span(states_.pairs).first(states_.pair_count); }
  size_t scratch() const {
    return layout_.function == StepFunction::LambDirection ? static_cast<size_t>(count_) * sizeof(float) : 0;
  }

  void operator()(const Call& call) const noexcept {
    if (const auto* skip = operand<uint8_t>(call, layout_.skip); skip != nullptr && *skip != 0)
      return keep(call);
    const StepNumbers numbers = numbers_now(call);
    StepOperands operands{.p = call.in<float>(0), .g = call.in<float>(1), .new_p = call.out<float>()};
    if (scratch() > 0) operands.new_p = call.scratch<float>();
    if (block_size_ > 0) {
      step_blocks(call, operands, numbers);
    } else {
      for (size_t i = 0; i < kMostStepStates; ++i)
        if (const auto& state = states_.states[i]; state.present) {
          operands.states[i] = call.in<float>(state.input);
          operands.new_states[i] = call.out<float>(state.output);
        }
      parallel_for(count_, 4, 64,
                   [&](int64_t begin, int64_t end) noexcept { step_range(operands, begin, end, numbers); });
    }
    if (scratch() > 0) apply_lamb(operands.p, operands.new_p, call.out<float>(), numbers.learning_rate);
  }

 private:
  template <class T>
  static const T* operand(const Call& call, int8_t i) noexcept {
    return i < 0 ? nullptr : call.in<T>(static_cast<size_t>(i));
  }
  void step_range(const StepOperands& operands, int64_t begin, int64_t end,
                  const StepNumbers& numbers) const noexcept {
    simd_->optimizer_step[static_cast<int>(layout_.function)](operands, begin, end, numbers);
  }

  void step_blocks(const Call& call, const StepOperands& all, const StepNumbers& numbers) const noexcept {
    std::array<std::optional<Codebook>, kMostStepStates> codebooks;
    for (size_t i = 0; i < kMostStepStates; ++i)
      if (const auto& state = states_.states[i]; state.present)
        codebooks[i].emplace(call.in<float>(state.codebook), state.levels);
    for_each_block(count_, block_size_, 40, [&](int64_t block, int64_t first, int64_t n) noexcept {
      alignas(64) float moments[kMostStepStates][kLargestBlock];
      StepOperands operands{.p = all.p + first, .g = all.g + first, .new_p = all.new_p + first};
      for (size_t i = 0; i < kMostStepStates; ++i)
        if (const auto& state = states_.states[i]; state.present) {
          codebooks[i]->numbers_of(*simd_, call.in<uint8_t>(state.input) + first,
                                   call.in<float>(state.scales)[block], moments[i], n);
          operands.states[i] = operands.new_states[i] = moments[i];
        }
      step_range(operands, 0, n, numbers);
      for (size_t i = 0; i < kMostStepStates; ++i)
        if (const auto& state = states_.states[i]; state.present)
          // A mean of squares that fell to 0 would make the next step infinite.
          call.out<float>(state.next_scales)[block] = codebooks[i]->codes_of(
              *simd_, moments[i], call.out<uint8_t>(state.output) + first, n, !state.negative);
    });
  }

  StepNumbers numbers_now(const Call& call) const noexcept {
    StepNumbers numbers = fixed_;
    numbers.learning_rate = *operand<float>(call, layout_.learning_rate);
    const float* scale = operand<float>(call, layout_.gradient_scale);
    numbers.gradient_scale = scale != nullptr ? *scale : 1.0f;
    if (const auto* counter = operand<int32_t>(call, layout_.step)) {
      const auto step = static_cast<double>(*counter);
      const auto correction = [&](float keep) {
        return static_cast<float>(1 / (1 - std::pow(static_cast<double>(keep), step)));
      };
      numbers.correction1 = correction(fixed_.keep1);
      numbers.correction2 = correction(fixed_.keep2);
      if (*counter == 1) numbers.share = 1;
    }
    return numbers;
  }

  void keep(const Call& call) const noexcept {
    const auto copy = [&](size_t from, size_t to, size_t bytes) noexcept {
      if (call.inputs[from] != call.outputs[to]) std::memcpy(call.outputs[to], call.inputs[from], bytes);
    };
    const auto count = static_cast<size_t>(count_);
    copy(0, 0, count * sizeof(float));
    for (const auto& state : states_.states) {
      if (!state.present) continue;
      copy(state.input, state.output, block_size_ > 0 ? count : count * sizeof(float));
      if (block_size_ > 0)
        copy(state.scales, state.next_scales,
             static_cast<size_t>((count_ + block_size_ - 1) / block_size_) * sizeof(float));
    }
  }

  /// The sum of squares, in an order that does not depend on the number of threads.
  static double squares(const float* x, int64_t n) noexcept {
    constexpr int kParts = 64;
    std::array<double, kParts> sums{};
    const auto sum_part = [&](int part) noexcept {
      const Range range = part_of(n, part, kParts);
      for (int64_t i = range.begin; i < range.end; ++i)
        sums[static_cast<size_t>(part)] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    };
    if (n < kSerialWork)
      for (int part = 0; part < kParts; ++part) sum_part(part);
    else
      parallel_parts(kParts, sum_part);
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  void apply_lamb(const float* p, const float* direction, float* new_p, float rate) const noexcept {
    const double length = std::sqrt(squares(p, count_)), step = std::sqrt(squares(direction, count_));
    const double ratio = length > 0 && step > 0 ? length / step : 1;
    const auto factor = static_cast<float>(-ratio * static_cast<double>(rate));
    parallel_for(count_, 2, 64, [&](int64_t begin, int64_t end) noexcept {
      if (p != new_p) std::memcpy(new_p + begin, p + begin, static_cast<size_t>(end - begin) * sizeof(float));
      simd_->axpy(new_p + begin, direction + begin, factor, end - begin);
    });
  }

  const Simd* simd_;
  StepLayout layout_;
  StepNumbers fixed_;
  int64_t count_, block_size_;
  StepStates states_;
};

Result<KernelPtr> make_step(CpuDevice& device, const Node& step, const NodeView& node, int64_t block_size) {
  const auto made = std::make_shared<const OptimizerStep>(device.simd(), step, node, block_size);
  Requirements requirements = in_place();
  requirements.more_in_place = made->pairs();
  requirements.scratch = made->scratch();
  return make_kernel([made](const Call& call) noexcept { (*made)(call); }, requirements);
}

Result<KernelPtr> create_step(CpuDevice& device, const NodeView& node, Producers) {
  return make_step(device, node.node, node, 0);
}

Result<KernelPtr> create_blockwise(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::BlockwiseStepAttributes>();
  Node step;
  step.op = step_of(attributes);
  return make_step(device, step, node, attributes.block_size);
}

}  // namespace

std::span<const KernelRow> rows_optimizer();
std::span<const KernelRow> rows_optimizer() {
  constexpr DTypeSet kF32{DType::F32};
  static constexpr KernelRow kRows[] = {
      row<create_step, supports_step>(OpKind::SgdStep, "sgd_step", kF32),
      row<create_step, supports_step>(OpKind::AdamStep, "adam_step", kF32),
      row<create_step, supports_step>(OpKind::RmsPropStep, "rms_prop_step", kF32),
      row<create_step, supports_step>(OpKind::AdagradStep, "adagrad_step", kF32),
      row<create_step, supports_step>(OpKind::AdadeltaStep, "adadelta_step", kF32),
      row<create_step, supports_step>(OpKind::LambStep, "lamb_step", kF32),
      row<create_step, supports_step>(OpKind::LionStep, "lion_step", kF32),
      row<create_blockwise, supports_blockwise>(OpKind::BlockwiseStep, "blockwise_step", kF32),
  };
  return kRows;
}

}  // namespace rt::cpu
