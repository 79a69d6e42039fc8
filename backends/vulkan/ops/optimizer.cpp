// Optimizer steps, one fused pass over a parameter.
#include <cmath>

#include "backends/vulkan/support.h"

namespace rt::vulkan {
namespace {

/// Parameters, gradients and moments in f32.
Status supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(fits(device, node));
  const size_t moments = node.kind() == OpKind::AdamStep ? 4 : 3;
  for (size_t i = 0; i < moments; ++i)
    if (node.has(i) && node.dtype(i) != DType::F32)
      return unsupported("input ", i, " of type ", name_of(node.dtype(i)), ", only f32 is supported");
  for (size_t i = node.kind() == OpKind::AdamStep ? 6 : 4; i < node.inputs.size(); ++i)
    if (node.has(i)) return unsupported("a scaled or skipped step");
  return {};
}

Result<KernelPtr> create_sgd(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const auto& sgd = node.as<op::SgdStepAttributes>();
  const int64_t count = ceil_div(node.input(0).elements(), 4);
  auto program = std::make_unique<Program>("sgd_step");
  Step& step = program->dispatch_each(Shader::sgd_step, count, cast(device).plan().elementwise_lanes);
  step.spec(node.has(2)).spec(sgd.nesterov);
  step.push(count).push(sgd.momentum).push(sgd.weight_decay);
  step.read(0, in(0)).read(1, in(1)).read(3, in(3)).write(4, out(0));
  if (node.has(2)) step.read(2, in(2));
  step.write(5, out(node.has(2) ? 1 : 0));
  program->in_place(0);
  return finish(std::move(program));
}

Result<KernelPtr> create_adam(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const auto& adam = node.as<op::AdamStepAttributes>();
  const auto beta1 = static_cast<double>(adam.beta1), beta2 = static_cast<double>(adam.beta2);
  const int64_t count = ceil_div(node.input(0).elements(), 4);
  auto program = std::make_unique<Program>("adam_step");
  Step& step = program->dispatch_each(Shader::adam_step, count, cast(device).plan().elementwise_lanes);
  step.spec(adam.decoupled);
  step.push(count).push(adam.beta1).push(adam.beta2);
  step.push(static_cast<float>(1 - beta1)).push(static_cast<float>(1 - beta2));
  step.push(static_cast<float>(std::log(beta1))).push(static_cast<float>(std::log(beta2)));
  step.push(adam.epsilon).push(adam.weight_decay);
  for (uint32_t i = 0; i < 6; ++i) step.read(i, in(i));
  for (uint32_t i = 0; i < 3; ++i) step.write(6 + i, out(i));
  program->in_place(0);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    {OpKind::SgdStep, "sgd_step", DTypeSet{DType::F32}, supports, create_sgd},
    {OpKind::AdamStep, "adam_step", DTypeSet{DType::F32}, supports, create_adam},
};

}  // namespace

std::span<const KernelRow> rows_optimizer() {
  return kRows;
}

}  // namespace rt::vulkan
