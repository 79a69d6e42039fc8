// Optimizer steps in one pass, in place. Learning rate, step, scale and skip are tensors, so that recorded
// work never changes. 8-bit states are dequantized, updated and requantized block by block, in L1.
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/optimizer.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/support/block_quantization.h"
#include "runtime/backend/state_pairs.h"

namespace librt::cpu {
namespace {

static_assert(static_cast<int>(StepFunction::Lion) == static_cast<int>(op::StepRule::Lion) &&
              static_cast<int>(StepFunction::Adadelta) == static_cast<int>(op::StepRule::Adadelta));

Status supports_step(const CpuDevice&, const NodeView& node) {
  return states_are_f32(node);
}

/// Blocks are processed in stack buffers.
constexpr int64_t kLargestBlock = 1024;

Status supports_blockwise(const CpuDevice&, const NodeView& node) {
  const int64_t block = node.as<op::BlockwiseStepAttributes>().block_size;
  if (block <= kLargestBlock) return {};
  return unsupported("blocks of at most ", kLargestBlock, " elements, not ", block);
}

/// One step at run time.
class OptimizerStep {
 public:
  OptimizerStep(const Simd& simd, const NodeView& node)
      : simd_(&simd), form_(step_form(node)), count_(node.input(0).elements()), pairs_(form_) {}

  /// In-place pairs of states and results, after the parameter's.
  std::span<const InPlace> pairs() const { return pairs_.span(); }
  size_t scratch() const {
    return form_.rule == op::StepRule::Lamb ? static_cast<size_t>(count_) * sizeof(float) : 0;
  }

  void operator()(const Call& call) const noexcept {
    if (const auto* skip = operand<uint8_t>(call, form_.skip); skip != nullptr && *skip != 0)
      return keep(call);
    const StepParameters numbers = current_parameters(call);
    StepOperands operands{.p = call.in<float>(0), .g = call.in<float>(1), .new_p = call.out<float>()};
    if (scratch() > 0) operands.new_p = call.scratch<float>();
    if (form_.block_size > 0) {
      step_blocks(call, operands, numbers);
    } else {
      for (size_t i = 0; i < kMostStepStates; ++i)
        if (const auto& state = form_.states[i]; state.present) {
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
                  const StepParameters& numbers) const noexcept {
    simd_->loops<OptimizerLoops>().optimizer_step[static_cast<int>(form_.rule)](operands, begin, end,
                                                                                numbers);
  }

  void step_blocks(const Call& call, const StepOperands& all, const StepParameters& numbers) const noexcept {
    std::array<std::optional<Codebook>, kMostStepStates> codebooks;
    for (size_t i = 0; i < kMostStepStates; ++i)
      if (const auto& state = form_.states[i]; state.present)
        codebooks[i].emplace(call.in<float>(state.codebook), state.levels);
    for_each_block(count_, form_.block_size, 40, [&](int64_t block, int64_t first, int64_t n) noexcept {
      alignas(64) float moments[kMostStepStates][kLargestBlock];
      StepOperands operands{.p = all.p + first, .g = all.g + first, .new_p = all.new_p + first};
      for (size_t i = 0; i < kMostStepStates; ++i)
        if (const auto& state = form_.states[i]; state.present) {
          codebooks[i]->dequantize(*simd_, call.in<uint8_t>(state.input) + first,
                                   call.in<float>(state.scales)[block], moments[i], n);
          operands.states[i] = operands.new_states[i] = moments[i];
        }
      step_range(operands, 0, n, numbers);
      for (size_t i = 0; i < kMostStepStates; ++i)
        if (const auto& state = form_.states[i]; state.present)
          // A second moment quantized to 0 would make the next step infinite.
          call.out<float>(state.next_scales)[block] = codebooks[i]->quantize(
              *simd_, moments[i], call.out<uint8_t>(state.output) + first, n, !state.negative);
    });
  }

  StepParameters current_parameters(const Call& call) const noexcept {
    StepParameters numbers{.learning_rate = *operand<float>(call, form_.learning_rate),
                           .weight_decay = form_.weight_decay,
                           .epsilon = form_.epsilon,
                           .beta1 = form_.beta1,
                           .beta2 = form_.beta2,
                           .momentum = form_.momentum,
                           .share = form_.share,
                           .variant = form_.variant};
    const float* scale = operand<float>(call, form_.gradient_scale);
    numbers.gradient_scale = scale != nullptr ? *scale : 1.0f;
    if (const auto* counter = operand<int32_t>(call, form_.step)) {
      const auto step = static_cast<double>(*counter);
      const auto correction = [&](float keep) {
        return static_cast<float>(1 / (1 - std::pow(static_cast<double>(keep), step)));
      };
      numbers.correction1 = correction(form_.beta1);
      numbers.correction2 = correction(form_.beta2);
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
    for (const auto& state : form_.states) {
      if (!state.present) continue;
      copy(state.input, state.output, form_.block_size > 0 ? count : count * sizeof(float));
      if (form_.block_size > 0)
        copy(state.scales, state.next_scales,
             static_cast<size_t>((count_ + form_.block_size - 1) / form_.block_size) * sizeof(float));
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
      simd_->loops<RowLoops>().axpy(new_p + begin, direction + begin, factor, end - begin);
    });
  }

  const Simd* simd_;
  StepForm form_;
  int64_t count_;
  StatePairs pairs_;
};

Result<KernelPtr> create_step(CpuDevice& device, const NodeView& node, Producers) {
  const auto made = std::make_shared<const OptimizerStep>(device.simd(), node);
  Requirements requirements = in_place();
  requirements.more_in_place = made->pairs();
  requirements.scratch = made->scratch();
  return make_kernel([made](const Call& call) noexcept { (*made)(call); }, requirements);
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
      row<create_step, supports_blockwise>(OpKind::BlockwiseStep, "blockwise_step", kF32),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
