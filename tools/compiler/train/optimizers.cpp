#include "tools/compiler/train/optimizers.h"

#include <map>

#include "runtime/core/element.h"
#include "runtime/geometry/optimizer_step.h"
#include "tools/compiler/name_pattern.h"
#include "tools/compiler/train/block_state.h"
#include "tools/compiler/train/data_parallel.h"

namespace librt::compiler {
namespace {

Blob filled(const TensorInfo& info, double number) {
  std::vector<std::byte> bytes(info.bytes());
  for (int64_t i = 0; i < info.elements(); ++i) store_element(bytes.data(), info.dtype, i, number);
  return Blob::own(std::move(bytes));
}

class UpdateWriter {
 public:
  UpdateWriter(Builder& builder, const TrainingOptimizer& options, StateTable& states,
               std::vector<StateUpdate>& updates)
      : e_(builder), options_(options), states_(states), updates_(updates) {}

  ValueId write(std::span<const Gradient> given, ValueId learning_rate, ValueId loss_scale, ValueId divisor) {
    e_.set_scope("optimizer");
    std::vector<Gradient> gradients(given.begin(), given.end());
    if (loss_scale != kNoValue) check_finite(gradients, loss_scale);
    prepare(gradients, loss_scale, divisor);
    if (counts_steps()) count_step();
    learning_rate_ = decayed_rate(learning_rate);
    for (const Gradient& gradient : gradients) update(gradient);
    return skip_;
  }

 private:
  ValueId f32(double number) { return e_.scalar(number, DType::F32); }
  ValueId product(ValueId a, ValueId b) { return a == kNoValue ? b : b == kNoValue ? a : e_.mul(a, b); }
  ValueId reciprocal(ValueId x) { return e_.emit(op::ReciprocalAttributes{}, {x}); }
  ValueId state(const std::string& name, const TensorInfo& info, StateKind kind, Blob initial = {}) {
    return e_.state(name, states_.make(name, info, kind, std::move(initial)), info);
  }
  void set(ValueId state, ValueId value) { updates_.push_back({.state = state, .value = value}); }
  ValueId unless_skipped(ValueId old, ValueId value) {
    return skip_ == kNoValue ? value : e_.emit(op::WhereAttributes{}, {skip_, old, value});
  }

  // --- all gradients

  void check_finite(std::span<const Gradient> gradients, ValueId loss_scale) {
    const ValueId finite = e_.emit_many(make_op(op::AllFiniteAttributes{}), values_of(gradients), 1)[0];
    skip_ = e_.emit(op::NotAttributes{}, {finite});
    if (options_.gradients.loss_scale_interval == 0) return;
    const TensorInfo count{.dtype = DType::I32, .shape = {}};
    const ValueId good_steps = state("loss_scale.good_steps", count, StateKind::Counter);
    op::LossScaleUpdateAttributes attributes;
    attributes.interval = options_.gradients.loss_scale_interval;
    const ValueId inputs[] = {loss_scale, good_steps, finite};
    const std::vector<ValueId> next = e_.emit_many(make_op(attributes), inputs, 2);
    set(loss_scale, next[0]);
    set(good_steps, next[1]);
  }

  static std::vector<ValueId> values_of(std::span<const Gradient> gradients) {
    std::vector<ValueId> values;
    for (const Gradient& gradient : gradients) values.push_back(gradient.value);
    return values;
  }

  /// Sets scale_ to the factor that the steps multiply gradients by.
  void prepare(std::vector<Gradient>& gradients, ValueId loss_scale, ValueId divisor) {
    const GradientOptions& options = options_.gradients;
    if (loss_scale != kNoValue || divisor != kNoValue) scale_ = reciprocal(product(loss_scale, divisor));
    if (options.clip_value) {
      op::ClipAttributes clip;
      clip.minimum = -*options.clip_value;
      clip.maximum = *options.clip_value;
      for (Gradient& gradient : gradients) {
        ValueId value = gradient.value;
        if (scale_ != kNoValue) value = e_.mul(value, e_.cast(scale_, e_.value(value).dtype));
        gradient.value = e_.emit(clip, {value});
      }
      scale_ = kNoValue;
    }
    if (options.clip_norm) {
      const ValueId norm =
          product(e_.emit_many(make_op(op::GlobalNormAttributes{}), values_of(gradients), 1)[0], scale_);
      const ValueId ratio = e_.div(f32(static_cast<double>(*options.clip_norm)), e_.add(norm, f32(1e-6)));
      scale_ = product(scale_, e_.emit(op::MinimumAttributes{}, {f32(1), ratio}));
    }
  }

  // --- scalars of the step

  bool counts_steps() const {
    switch (options_.optimizer.optimizer) {
      case Optimizer::Adam:
      case Optimizer::AdamW:
      case Optimizer::Lamb: return true;
      case Optimizer::Sgd: return options_.optimizer.dampening != 0;
      case Optimizer::Adagrad: return options_.optimizer.learning_rate_decay != 0;
      default: return false;
    }
  }
  /// The index of the current step, from 1; skipped steps do not count.
  void count_step() {
    const ValueId counter = state("optimizer.step", {.dtype = DType::I32, .shape = {}}, StateKind::Counter);
    step_ = e_.add(counter, e_.scalar(1, DType::I32));
    set(counter, unless_skipped(counter, step_));
  }
  ValueId decayed_rate(ValueId rate) {
    const float decay = options_.optimizer.learning_rate_decay;
    if (decay == 0 || step_ == kNoValue) return rate;
    const ValueId before = e_.cast(e_.sub(step_, e_.scalar(1, DType::I32)), DType::F32);
    return e_.div(rate, e_.add(f32(1), e_.mul(before, f32(static_cast<double>(decay)))));
  }
  ValueId rate_of(const ParameterGroup* group) {
    if (group == nullptr || group->learning_rate_scale == 1) return learning_rate_;
    auto [rate, is_new] = rates_.try_emplace(group->learning_rate_scale, kNoValue);
    if (is_new) rate->second = e_.mul(learning_rate_, f32(static_cast<double>(group->learning_rate_scale)));
    return rate->second;
  }

  // --- one parameter

  /// A step's operand that is a state, kept in state_type between steps.
  struct Moment {
    ValueId kept = kNoValue;
    ValueId scales = kNoValue;  ///< per block, where `kept` is quantized
  };
  using Moments = std::vector<Moment>;

  ValueId moment(Moments& moments, const char* suffix, double initial = 0) {
    TensorInfo info{.dtype = options_.optimizer.state_type, .shape = e_.value(parameter_).info().shape};
    const bool blocks = info.dtype == DType::U8;
    if (blocks && info.shape.elements() < kSmallestBlockState) info.dtype = DType::F32;
    const std::string name = e_.value(parameter_).name + suffix;
    Moment made;
    if (info.dtype == DType::U8) {
      // Every element of a block is its scale times the codebook's last level, 1.
      const TensorInfo scales{.dtype = DType::F32,
                              .shape = {(info.shape.elements() + kStateBlock - 1) / kStateBlock}};
      made.kept = state(name, info, StateKind::Optimizer, initial == 0 ? Blob() : filled(info, 255));
      made.scales = state(name + ".scales", scales, StateKind::Optimizer,
                          initial == 0 ? Blob() : filled(scales, initial));
    } else {
      made.kept = state(name, info, StateKind::Optimizer, initial == 0 ? Blob() : filled(info, initial));
    }
    moments.push_back(made);
    return info.dtype == DType::BF16 ? e_.cast(made.kept, DType::F32) : made.kept;
  }

  ValueId codebook(const StepState& state) {
    ValueId& made = codebooks_[codebook_operand(state) - kFirstCodebook];
    if (made != kNoValue) return made;
    const std::vector<float> numbers = dynamic_codebook(state.negative);
    return made = e_.constant({.dtype = DType::F32, .shape = {static_cast<int64_t>(numbers.size())}},
                              Blob::copy_of(numbers.data(), numbers.size() * sizeof(float)));
  }

  /// The step's results: the parameter, each moment, and the scales of block-wise quantized ones.
  template <class Attributes>
  std::vector<ValueId> emit_step(Attributes attributes, std::vector<ValueId> inputs, const Moments& moments) {
    inputs.push_back(scale_);
    inputs.push_back(skip_);
    while (inputs.back() == kNoValue) inputs.pop_back();
    const OpAttributes step = make_op(attributes);
    if (moments.empty() || moments[0].scales == kNoValue)
      return e_.emit_many(step, inputs, 1 + moments.size());
    inputs.insert(inputs.begin() + kFirstCodebook, kBlockwiseOperands, kNoValue);
    size_t next = 0;
    for (size_t i = 0; const StepState& state : step_states(step.type)) {
      const size_t operand = blockwise_operand(state.operand);
      if (operand < inputs.size() && inputs[operand] != kNoValue) {
        inputs[codebook_operand(state)] = codebook(state);
        inputs[kFirstScales + i] = moments[next++].scales;
      }
      ++i;
    }
    return e_.emit_many(make_op(blockwise(step, kStateBlock)), inputs, 1 + 2 * moments.size());
  }

  void keep(const Moments& moments, std::span<const ValueId> next) {
    for (size_t i = 0; i < moments.size(); ++i) {
      const DType kept = e_.value(moments[i].kept).dtype;
      set(moments[i].kept, kept == DType::BF16 ? e_.cast(next[i], kept) : next[i]);
      if (moments[i].scales != kNoValue) set(moments[i].scales, next[moments.size() + i]);
    }
  }

  /// This rank's shard of a bucket.
  ValueId shard_of(ValueId flat) {
    op::RankShardAttributes attributes;
    attributes.ranks = options_.shards;
    return e_.emit(attributes, {flat});
  }
  /// The shards of all ranks, gathered.
  ValueId gathered(ValueId shard) {
    op::AllGatherAttributes attributes;
    attributes.ranks = options_.shards;
    return e_.emit(op::CollectiveWaitAttributes{}, {e_.emit(attributes, {shard})});
  }

  void update(const Gradient& gradient) {
    const bool sharded = !gradient.bucket.empty();
    const std::string first = e_.value(sharded ? gradient.bucket[0] : gradient.parameter).name;
    const std::string name = sharded ? text("shard", shards_++) : first;
    e_.set_scope(text("optimizer.", name));
    ValueId value = gradient.value;
    parameter_ = gradient.parameter;
    if (sharded) {
      value = shard_of(value);
      parameter_ = shard_of(emit_flattened(e_, gradient.bucket));
      if (!e_.status().ok()) return;
      e_.graph().values[parameter_].name = text("optimizer.", name);
    }
    const int number = group_of(options_, first);
    const ParameterGroup* group = number < 0 ? nullptr : &options_.groups[static_cast<size_t>(number)];
    const float decay =
        group != nullptr && group->weight_decay ? *group->weight_decay : options_.optimizer.weight_decay;
    Moments moments;
    const std::vector<ValueId> next = step(value, rate_of(group), decay, moments);
    if (!e_.status().ok()) return;
    keep(moments, std::span(next).subspan(1));
    if (!sharded) return finish(parameter_, next[0]);
    const std::vector<ValueId> pieces = emit_like(e_, gathered(next[0]), gradient.bucket);
    for (size_t i = 0; i < pieces.size(); ++i) finish(gradient.bucket[i], pieces[i]);
  }

  void finish(ValueId parameter, ValueId next) {
    set(parameter, next);
    if (options_.average_decay) average(parameter, next);
  }

  std::vector<ValueId> step(ValueId g, ValueId rate, float decay, Moments& m) {
    const OptimizerOptions& o = options_.optimizer;
    const ValueId p = parameter_;
    switch (o.optimizer) {
      case Optimizer::Sgd: {
        op::SgdStepAttributes attributes;
        attributes.momentum = o.momentum.value_or(0.9f);
        attributes.dampening = o.dampening;
        attributes.nesterov = o.nesterov;
        attributes.weight_decay = decay;
        const ValueId v = attributes.momentum != 0 ? moment(m, ".velocity") : kNoValue;
        return emit_step(attributes, {p, g, v, rate, v == kNoValue ? kNoValue : step_}, m);
      }
      case Optimizer::Adam:
      case Optimizer::AdamW: {
        op::AdamStepAttributes attributes;
        attributes.beta1 = o.beta1.value_or(0.9f);
        attributes.beta2 = o.beta2.value_or(0.999f);
        attributes.epsilon = o.epsilon.value_or(1e-8f);
        attributes.weight_decay = decay;
        attributes.decoupled = o.optimizer == Optimizer::AdamW;
        const ValueId first = moment(m, ".m"), second = moment(m, ".v");
        return emit_step(attributes,
                         {p, g, first, second, step_, rate, o.amsgrad ? moment(m, ".max_v") : kNoValue}, m);
      }
      case Optimizer::RmsProp: {
        op::RmsPropStepAttributes attributes;
        attributes.alpha = o.decay_rate.value_or(0.99f);
        attributes.epsilon = o.epsilon.value_or(1e-8f);
        attributes.momentum = o.momentum.value_or(0);
        attributes.weight_decay = decay;
        const ValueId squares = moment(m, ".square_average");
        const ValueId mean = o.centered ? moment(m, ".gradient_average") : kNoValue;
        const ValueId velocity = attributes.momentum != 0 ? moment(m, ".velocity") : kNoValue;
        return emit_step(attributes, {p, g, squares, rate, mean, velocity}, m);
      }
      case Optimizer::Adagrad: {
        op::AdagradStepAttributes attributes;
        attributes.epsilon = o.epsilon.value_or(1e-10f);
        attributes.weight_decay = decay;
        const ValueId sum = moment(m, ".square_sum", static_cast<double>(o.initial_accumulator));
        return emit_step(attributes, {p, g, sum, rate}, m);
      }
      case Optimizer::Adadelta: {
        op::AdadeltaStepAttributes attributes;
        attributes.rho = o.decay_rate.value_or(0.9f);
        attributes.epsilon = o.epsilon.value_or(1e-6f);
        attributes.weight_decay = decay;
        const ValueId squares = moment(m, ".square_average"), deltas = moment(m, ".delta_average");
        return emit_step(attributes, {p, g, squares, deltas, rate}, m);
      }
      case Optimizer::Lamb: {
        op::LambStepAttributes attributes;
        attributes.beta1 = o.beta1.value_or(0.9f);
        attributes.beta2 = o.beta2.value_or(0.999f);
        attributes.epsilon = o.epsilon.value_or(1e-6f);
        attributes.weight_decay = decay;
        const ValueId first = moment(m, ".m"), second = moment(m, ".v");
        return emit_step(attributes, {p, g, first, second, step_, rate}, m);
      }
      case Optimizer::Lion: break;
    }
    op::LionStepAttributes attributes;
    attributes.beta1 = o.beta1.value_or(0.9f);
    attributes.beta2 = o.beta2.value_or(0.99f);
    attributes.weight_decay = decay;
    const ValueId mean = moment(m, ".m");
    return emit_step(attributes, {p, g, mean, rate}, m);
  }

  /// ema' = ema + (1 - decay) (p' - ema)
  void average(ValueId id, ValueId next) {
    const Value parameter = e_.value(id);
    const ValueId ema = state(average_name(parameter.name), parameter.info(), StateKind::Optimizer,
                              states_[parameter.state].initial);
    const double share = 1 - static_cast<double>(*options_.average_decay);
    const ValueId moved = e_.add(ema, e_.mul(e_.sub(next, ema), e_.scalar_like(share, ema)));
    set(ema, unless_skipped(ema, moved));
  }

  Builder& e_;
  const TrainingOptimizer& options_;
  StateTable& states_;
  std::vector<StateUpdate>& updates_;
  ValueId scale_ = kNoValue, skip_ = kNoValue, step_ = kNoValue, learning_rate_ = kNoValue,
          parameter_ = kNoValue;
  std::map<float, ValueId> rates_;
  ValueId codebooks_[2] = {kNoValue, kNoValue};  ///< for signed states, for non-negative states
  int shards_ = 0;                               ///< so far
};

}  // namespace

ValueId emit_loss_scale(Builder& builder, const GradientOptions& options, StateTable& states) {
  if (!options.loss_scale) return kNoValue;
  const TensorInfo info{.dtype = DType::F32, .shape = {}};
  if (options.loss_scale_interval == 0)
    return builder.scalar(static_cast<double>(*options.loss_scale), DType::F32);
  return builder.state("loss_scale",
                       states.make("loss_scale", info, StateKind::Optimizer,
                                   filled(info, static_cast<double>(*options.loss_scale))),
                       info);
}

ValueId emit_optimizer(Builder& builder, const TrainingOptimizer& options,
                       std::span<const Gradient> gradients, ValueId learning_rate, ValueId loss_scale,
                       ValueId divisor, StateTable& states, std::vector<StateUpdate>& updates) {
  return UpdateWriter(builder, options, states, updates).write(gradients, learning_rate, loss_scale, divisor);
}

int group_of(const TrainingOptimizer& options, const std::string& parameter) {
  for (size_t i = 0; i < options.groups.size(); ++i)
    if (is_match(options.groups[i].pattern, parameter)) return static_cast<int>(i);
  return -1;
}

std::string average_name(std::string_view parameter) {
  return text(parameter, ".ema");
}

}  // namespace librt::compiler
