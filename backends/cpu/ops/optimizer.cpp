// Optimizer steps in one pass, in place. Learning rate, step, scale and skip are tensors: recorded work never
// changes.
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backends/cpu/kernel.h"

namespace rt::cpu {
namespace {

/// Where the operands of a step stand among its inputs. Results are the parameter and then the states that
/// are present.
struct StepLayout {
  StepFunction function;
  std::array<int8_t, 3> states;  ///< -1: none
  int8_t learning_rate, step, gradient_scale, skip;
};

StepLayout layout_of(OpKind kind) {
  switch (kind) {
    case OpKind::SgdStep: return {StepFunction::Sgd, {2, -1, -1}, 3, 4, 5, 6};
    case OpKind::AdamStep: return {StepFunction::Adam, {2, 3, 6}, 5, 4, 7, 8};
    case OpKind::RmsPropStep: return {StepFunction::RmsProp, {2, 4, 5}, 3, -1, 6, 7};
    case OpKind::AdagradStep: return {StepFunction::Adagrad, {2, -1, -1}, 3, -1, 4, 5};
    case OpKind::AdadeltaStep: return {StepFunction::Adadelta, {2, 3, -1}, 4, -1, 5, 6};
    case OpKind::LambStep: return {StepFunction::LambDirection, {2, 3, -1}, 5, 4, 6, 7};
    default: return {StepFunction::Lion, {2, -1, -1}, 3, -1, 4, 5};
  }
}

Status supports_step(const CpuDevice&, const NodeView& node) {
  for (int8_t i : layout_of(node.kind()).states)
    if (i >= 0 && node.has(static_cast<size_t>(i)) && node.dtype(static_cast<size_t>(i)) != DType::F32)
      return unsupported("states must be f32, not ", name_of(node.dtype(static_cast<size_t>(i))));
  return {};
}

/// The attributes; what is read at every run is left at 0.
StepNumbers numbers_of(const NodeView& node) {
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
  OptimizerStep(const Simd& simd, const NodeView& node)
      : simd_(&simd),
        layout_(layout_of(node.kind())),
        fixed_(numbers_of(node)),
        count_(node.input(0).elements()) {
    for (size_t i = 0; i < 3; ++i)
      present_[i] = layout_.states[i] >= 0 && node.has(static_cast<size_t>(layout_.states[i]));
  }

  /// Pairs of states and results behind the parameter's.
  std::span<const InPlace> pairs() const {
    static constexpr InPlace kFirst[] = {{2, 1}};
    static constexpr InPlace kFirstTwo[] = {{2, 1}, {3, 2}};
    static constexpr InPlace kAdam[] = {{2, 1}, {3, 2}, {6, 3}};
    static constexpr InPlace kRmsProp[] = {{2, 1}, {4, 2}, {5, 3}};
    static constexpr InPlace kRmsPropMomentum[] = {{2, 1}, {5, 2}};
    if (!present_[0]) return {};
    if (layout_.function == StepFunction::Adam) return std::span(kAdam).first(present_[2] ? 3 : 2);
    if (layout_.function != StepFunction::RmsProp) return std::span(kFirstTwo).first(present_[1] ? 2 : 1);
    if (!present_[1]) return present_[2] ? std::span<const InPlace>(kRmsPropMomentum) : kFirst;
    return std::span(kRmsProp).first(present_[2] ? 3 : 2);
  }
  bool needs_scratch() const { return layout_.function == StepFunction::LambDirection; }
  int64_t count() const { return count_; }

  void operator()(const Call& call) const noexcept {
    StepOperands operands = operands_of(call);
    if (const auto* skip = operand<uint8_t>(call, layout_.skip); skip != nullptr && *skip != 0)
      return keep(operands);
    const StepNumbers numbers = numbers_now(call);
    float* new_p = operands.new_p;
    if (needs_scratch()) operands.new_p = call.scratch<float>();
    const auto loop = simd_->optimizer_step[static_cast<int>(layout_.function)];
    parallel_for(count_, 4, 64,
                 [&](int64_t begin, int64_t end) noexcept { loop(operands, begin, end, numbers); });
    if (needs_scratch()) apply_lamb(operands.p, operands.new_p, new_p, numbers.learning_rate);
  }

 private:
  template <class T>
  static const T* operand(const Call& call, int8_t i) noexcept {
    return i < 0 ? nullptr : call.in<T>(static_cast<size_t>(i));
  }

  StepOperands operands_of(const Call& call) const noexcept {
    StepOperands operands{};
    operands.p = call.in<float>(0);
    operands.g = call.in<float>(1);
    operands.new_p = call.out<float>(0);
    size_t output = 0;
    for (size_t i = 0; i < 3; ++i)
      if (present_[i]) {
        operands.states[i] = operand<float>(call, layout_.states[i]);
        operands.new_states[i] = call.out<float>(++output);
      }
    return operands;
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

  void keep(const StepOperands& operands) const noexcept {
    const auto copy = [&](const float* from, float* to) noexcept {
      if (from != nullptr && from != to) std::memcpy(to, from, static_cast<size_t>(count_) * sizeof(float));
    };
    copy(operands.p, operands.new_p);
    for (size_t i = 0; i < 3; ++i) copy(operands.states[i], operands.new_states[i]);
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
  int64_t count_;
  std::array<bool, 3> present_{};
};

Result<KernelPtr> create_step(CpuDevice& device, const NodeView& node, Producers) {
  const OptimizerStep step(device.simd(), node);
  Requirements requirements = in_place();
  requirements.more_in_place = step.pairs();
  if (step.needs_scratch()) requirements.scratch = static_cast<size_t>(step.count()) * sizeof(float);
  return make_kernel([step](const Call& call) noexcept { step(call); }, requirements);
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
  };
  return kRows;
}

}  // namespace rt::cpu
