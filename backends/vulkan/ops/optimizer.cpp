// Optimizer steps: one invocation computes the scalars shared by all elements, then one fused pass over a
// parameter, or over those of adjacent nodes of one form; block-quantized 8-bit states.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "backends/vulkan/dispatch/split.h"
#include "runtime/geometry/step_form.h"

namespace librt::vulkan {
namespace {

constexpr int64_t kVec4Bytes[] = {16};  ///< bytes per invocation
constexpr uint64_t kScratchOfScalars =
    256;  ///< optimizer_scalars.comp; no device requires a larger alignment

/// Of a dispatch.
constexpr size_t kMostWeights = 128;
/// A weight of more bytes is a dispatch of its own: it occupies the device, and addresses from a table cost
/// more than they save (a BERT layer on lavapipe: a step takes 1.09 times as long).
constexpr uint64_t kMostTableBytes = uint64_t{1} << 18;
constexpr uint64_t kTableBytes = kMostWeights * 8 * sizeof(uint32_t);  ///< as in optimizer_steps.comp

/// Parameters, gradients and states in f32.
Status supports(const Device& device, const NodeView& node) {
  RT_TRY(rows_fit(device, ceil_div(node.input(0).elements(), 4), kVec4Bytes));
  for (const StepState& state : step_states(node.kind()))
    if (node.has(state.operand) && node.dtype(state.operand) != DType::F32)
      return unsupported("input ", static_cast<int>(state.operand), " of type ",
                         name_of(node.dtype(state.operand)), ", only f32 is supported");
  return {};
}

/// Absent operands are bound to a valid input, which is not read.
Ref input_or(int i, size_t other) {
  return in(i >= 0 ? static_cast<size_t>(i) : other);
}

/// One invocation writes the scalars shared by all elements.
void add_scalars(Program& program, const StepForm& form, const Ref& scalars) {
  const auto rate = static_cast<size_t>(form.learning_rate);
  const auto logarithm = [](float beta) {
    return static_cast<float>(std::log(std::max(static_cast<double>(beta), 1e-30)));
  };
  Step& shared = program.dispatch(Shader::optimizer_scalars, 1, 1);
  shared.spec(form.step >= 0).spec(form.gradient_scale >= 0).spec(form.skip >= 0);
  shared.push(logarithm(form.beta1)).push(logarithm(form.beta2)).push(form.share);
  shared.read(0, in(rate))
      .read(1, input_or(form.step, rate))
      .read(2, input_or(form.gradient_scale, rate))
      .read(3, input_or(form.skip, rate));
  shared.write(4, scalars);
}

/// The constants and attributes of optimizer.glsl, after the number of elements.
void set_attributes(Step& step, const StepForm& form) {
  uint32_t present = 0;
  for (uint32_t i = 0; i < kMostStepStates; ++i) present |= form.has(i) ? 1u << i : 0u;
  step.spec(static_cast<uint32_t>(form.rule)).spec(present).spec(form.variant);
  step.push(form.beta1).push(form.beta2);
  step.push(static_cast<float>(1 - static_cast<double>(form.beta1)));
  step.push(static_cast<float>(1 - static_cast<double>(form.beta2)));
  step.push(form.epsilon).push(form.weight_decay).push(form.momentum);
}

/// Parameter, gradient and states, and what they become (no gradient); an absent state is the parameter.
struct StepRefs {
  std::array<Ref, 2 + kMostStepStates> now, next;
};

/// A weight of so many vec4 by dispatches of its own, with scratch for StepJoint.
void add_step(Program& program, const VulkanDevice& vulkan, int64_t count, const StepForm& form,
              const StepRefs& refs) {
  const Ref scalars = program.scratch(kScratchOfScalars);
  program.scratch(kTableBytes);
  add_scalars(program, form, scalars);
  const Shader shader = form.has(2) ? Shader::optimizer_step_3 : Shader::optimizer_step_2;
  for (const Rows& part : ranges_of_rows(vulkan, count, kVec4Bytes)) {
    const auto of = [&](const Ref& whole) { return rows_of(whole, part, kVec4Bytes[0]); };
    Step& step = program.dispatch_each(shader, part.count, vulkan.plan().elementwise_lanes);
    step.push(part.count);
    set_attributes(step, form);
    step.read(0, of(refs.now[0])).read(1, of(refs.now[1])).read(5, scalars).write(6, of(refs.next[0]));
    for (uint32_t i = 0; i < (form.has(2) ? 3u : 2u); ++i)
      step.read(2 + i, of(refs.now[2 + i])).write(7 + i, of(refs.next[2 + i]));
  }
}

/// Parameter, gradient and states of a weight; an absent state is not present().
using WeightRefs = std::array<BufferRef, 2 + kMostStepStates>;

bool same_place(const BufferRef& a, const BufferRef& b) {
  return a.slot == b.slot && a.offset == b.offset;
}
BufferRef union_of(const BufferRef& a, const BufferRef& b) {
  const uint64_t begin = std::min(a.offset, b.offset);
  return {a.slot, begin, std::max(a.offset + a.bytes, b.offset + b.bytes) - begin};
}

/// Weights of one form that are updated in place by one dispatch.
class StepJoint final : public Joint {
 public:
  StepJoint(const StepForm& form, const Bindings& bindings, const WeightRefs& weight, uint64_t most_bytes)
      : form_(form), most_bytes_(most_bytes), scratch_(bindings.scratch), weights_{weight}, ranges_(weight) {
    const int8_t operands[] = {form.learning_rate, form.step, form.gradient_scale, form.skip};
    for (size_t i = 0; i < scalars_.size(); ++i)
      if (operands[i] >= 0) scalars_[i] = bindings.inputs[static_cast<size_t>(operands[i])];
  }

  bool join(Joint& later) override {
    const auto* other = dynamic_cast<const StepJoint*>(&later);
    if (other == nullptr || weights_.size() == kMostWeights || is_large() || other->is_large() ||
        !same_form(*other))
      return false;
    WeightRefs ranges = ranges_;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (!ranges[i].present()) continue;
      if (ranges[i].slot != other->ranges_[i].slot) return false;
      ranges[i] = union_of(ranges[i], other->ranges_[i]);
      if (ranges[i].bytes > most_bytes_) return false;
    }
    ranges_ = ranges;
    weights_.push_back(other->weights_[0]);
    return true;
  }

  Status record(VulkanCommands& commands) override {
    const VulkanDevice& device = commands.device();
    std::vector<BufferRef> inputs(scalars_.begin(), scalars_.end());
    inputs.insert(inputs.end(), ranges_.begin(), ranges_.end());
    const Bindings bindings{inputs, {}, scratch_, {}};
    StepForm form = form_;  // with the scalars as inputs 0 to 3, and the weights after them
    int8_t* const operands[] = {&form.learning_rate, &form.step, &form.gradient_scale, &form.skip};
    for (size_t i = 0; i < scalars_.size(); ++i)
      *operands[i] = scalars_[i].present() ? static_cast<int8_t>(i) : -1;
    if (weights_.size() == 1) {
      Program program("optimizer_step");
      StepRefs refs;
      for (size_t i = 0; i < ranges_.size(); ++i)
        refs.now[i] = refs.next[i] = in(scalars_.size() + (ranges_[i].present() ? i : 0));
      add_step(program, device, ceil_div(static_cast<int64_t>(ranges_[0].bytes), kVec4Bytes[0]), form, refs);
      return program.record(commands, bindings);
    }
    constexpr uint32_t kEach = 4;
    const uint32_t lanes = device.plan().elementwise_lanes;
    std::vector<uint32_t> table;
    uint32_t groups = 0;
    for (const WeightRefs& weight : weights_) {
      const auto count =
          static_cast<uint32_t>(ceil_div(static_cast<int64_t>(weight[0].bytes), kVec4Bytes[0]));
      table.insert(table.end(), {groups, count});
      for (size_t i = 0; i < weight.size(); ++i)
        table.push_back(static_cast<uint32_t>((weight[i].offset - ranges_[i].offset) / 16));
      table.push_back(0);
      groups += (count + lanes * kEach - 1) / (lanes * kEach);
    }
    Program program("optimizer_steps");
    const Ref scalars = program.scratch(kScratchOfScalars), rows = program.scratch(kTableBytes);
    add_scalars(program, form, scalars);
    program.update(rows, table);
    Step& step = program.dispatch(Shader::optimizer_steps, groups, lanes);
    step.push(static_cast<uint32_t>(weights_.size()));
    set_attributes(step, form);
    step.spec(kEach);
    for (uint32_t i = 0; i < ranges_.size(); ++i) {
      if (!ranges_[i].present()) continue;
      if (i == 1)
        step.read(i, in(scalars_.size() + i));
      else
        step.write(i, in(scalars_.size() + i));
    }
    step.read(5, scalars).read(6, rows);
    return program.record(commands, bindings);
  }

 private:
  bool is_large() const { return weights_[0][0].bytes > kMostTableBytes; }
  bool same_form(const StepJoint& other) const {
    const auto attributes = [](const StepForm& form) {
      return std::tuple(form.rule, form.variant, form.beta1, form.beta2, form.epsilon, form.weight_decay,
                        form.momentum, form.share, form.has(0), form.has(1), form.has(2));
    };
    return attributes(form_) == attributes(other.form_) &&
           std::equal(scalars_.begin(), scalars_.end(), other.scalars_.begin(), same_place);
  }

  StepForm form_;
  uint64_t most_bytes_;  ///< of a range that can be bound
  BufferRef scratch_;    ///< of the first weight's node: all operands are alive then
  std::array<BufferRef, 4> scalars_;
  std::vector<WeightRefs> weights_;
  WeightRefs ranges_;  ///< of all weights
};

/// Nothing where the results have memory of their own, or an operand is larger than can be bound.
std::optional<Status> record_joint(VulkanCommands& commands, const Bindings& bindings, const StepForm& form) {
  WeightRefs weight;
  weight[0] = bindings.inputs[0];
  weight[1] = bindings.inputs[1];
  bool in_place = same_place(weight[0], bindings.outputs[0]);
  for (size_t i = 0; i < kMostStepStates; ++i) {
    const StepForm::State& state = form.states[i];
    if (!state.present) continue;
    weight[2 + i] = bindings.inputs[state.input];
    in_place = in_place && same_place(weight[2 + i], bindings.outputs[state.output]);
  }
  const uint64_t most = commands.device().plan().max_binding_bytes - 16;  // rounded up to a vec4
  if (!in_place || weight[0].bytes > most) return {};
  std::vector<BoundRange> operands;
  for (size_t i = 0; i < weight.size(); ++i)
    if (weight[i].present()) operands.push_back({.write = i != 1, .range = weight[i]});
  for (const int8_t i : {form.learning_rate, form.step, form.gradient_scale, form.skip})
    if (i >= 0) operands.push_back({.range = bindings.inputs[static_cast<size_t>(i)]});
  return commands.add_joining(std::make_unique<StepJoint>(form, bindings, weight, most), operands);
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const StepForm form = step_form(node);
  auto program = std::make_unique<Program>("optimizer_step");
  StepRefs refs;
  refs.now.fill(in(0));
  refs.now[1] = in(1);
  refs.next.fill(out(0));
  for (size_t i = 0; i < kMostStepStates; ++i) {
    if (form.has(i)) refs.now[2 + i] = in(form.states[i].input);
    refs.next[2 + i] = out(form.states[i].output);
  }
  add_step(*program, cast(device), ceil_div(node.input(0).elements(), 4), form, refs);
  program->in_place(0);
  for (const StepForm::State& state : form.states)
    if (state.present) program->also_in_place(state.input, state.output);
  program->or_else([form](VulkanCommands& commands, const Bindings& bindings) {
    return record_joint(commands, bindings, form);
  });
  return finish(std::move(program));
}

constexpr int64_t kLargestBlock =
    1024;  ///< its three states fit into the least shared memory that a device has

constexpr int64_t kBlocksPerGroup = 4;  ///< blocks of a workgroup, which prepares the codebooks once

/// Bytes of a block in a parameter, in quantized values, in scales.
std::array<int64_t, 3> block_bytes(const NodeView& node) {
  const int64_t block = node.as<op::BlockwiseStepAttributes>().block_size;
  return {4 * block, block, 4};
}
int64_t blocks_of(const NodeView& node) {
  return ceil_div(node.input(0).elements(), node.as<op::BlockwiseStepAttributes>().block_size);
}

Status supports_blockwise(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  const auto& attributes = node.as<op::BlockwiseStepAttributes>();
  if (attributes.step == op::StepRule::Lamb)
    return unsupported("Lamb needs two reductions over the parameter");
  if (attributes.block_size > kLargestBlock)
    return unsupported("blocks of at most ", kLargestBlock, " elements, not ", attributes.block_size);
  return rows_fit(device, blocks_of(node), block_bytes(node));
}

/// Quantized states and scales are updated in place, after a copy if the outputs are other buffers: separate
/// inputs and outputs would be more operands than can be bound.
Result<KernelPtr> create_blockwise(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const StepForm form = step_form(node);
  auto program = std::make_unique<Program>("blockwise_step");
  constexpr uint64_t kScalarBytes = 64, kCodebookBytes = 1024;
  const Ref table = program->scratch(kScalarBytes + 2 * kCodebookBytes);
  const auto part_of_table = [&](uint64_t offset, uint64_t bytes) {
    Ref part = table;
    part.offset += offset;
    part.bytes = bytes;
    return part;
  };
  add_scalars(*program, form, part_of_table(0, kScalarBytes));
  program->in_place(0);
  std::array<int32_t, 2> levels{1, 1};
  std::array<bool, 2> copied{};
  uint32_t negative = 0;
  for (uint32_t i = 0; i < kMostStepStates; ++i) {
    const StepForm::State& state = form.states[i];
    if (!state.present) continue;
    program->also_in_place(state.input, state.output);
    program->also_in_place(state.scales, state.next_scales);
    program->copy(out(state.output), in(state.input));
    program->copy(out(state.next_scales), in(state.scales));
    negative |= state.negative ? 1u << i : 0u;
    const size_t book = state.negative ? 0 : 1;
    levels[book] = state.levels;
    if (std::exchange(copied[book], true)) continue;
    program->copy(
        part_of_table(kScalarBytes + kCodebookBytes * book, 4 * static_cast<uint64_t>(state.levels)),
        in(state.codebook));
  }
  const VulkanDevice& vulkan = cast(device);
  const std::array<int64_t, 3> bytes = block_bytes(node);
  const int64_t count = node.input(0).elements();
  for (const Rows& part : ranges_of_rows(vulkan, blocks_of(node), bytes)) {
    const int64_t block = form.block_size, first = part.first * block;
    Step& step =
        program->dispatch(Shader::blockwise_step, static_cast<uint64_t>(part.count), vulkan.plan().row_lanes);
    step.push(std::min(part.count * block, count - first));
    set_attributes(step, form);
    step.spec(static_cast<uint64_t>(block)).spec(negative).spec(kBlocksPerGroup);
    step.push(levels[0]).push(levels[1]);
    step.read(0, rows_of(in(0), part, bytes[0])).read(1, rows_of(in(1), part, bytes[0])).read(2, table);
    step.write(3, rows_of(out(0), part, bytes[0]));
    for (uint32_t i = 0; i < kMostStepStates; ++i) {
      // Absent states are bound to the table and not accessed.
      if (!form.has(i)) {
        step.read(4 + i, table).read(7 + i, table);
        continue;
      }
      step.write(4 + i, rows_of(out(form.states[i].output), part, bytes[1]));
      step.write(7 + i, rows_of(out(form.states[i].next_scales), part, bytes[2]));
    }
  }
  return finish(std::move(program));
}

constexpr DTypeSet kF32{DType::F32};
constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::SgdStep, "sgd_step", kF32),
    row<create, supports>(OpKind::AdamStep, "adam_step", kF32),
    row<create, supports>(OpKind::RmsPropStep, "rms_prop_step", kF32),
    row<create, supports>(OpKind::AdagradStep, "adagrad_step", kF32),
    row<create, supports>(OpKind::AdadeltaStep, "adadelta_step", kF32),
    row<create, supports>(OpKind::LionStep, "lion_step", kF32),
    row<create_blockwise, supports_blockwise>(OpKind::BlockwiseStep, "blockwise_step", kF32),
};

}  // namespace

std::span<const KernelRow> rows_optimizer() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
