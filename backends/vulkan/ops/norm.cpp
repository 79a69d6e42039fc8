// BatchNorm with given and with batch statistics, its gradient, LayerNorm, RmsNorm and their gradient.
// Statistics take two ordered passes: the mean, then the squared deviations.
#include "runtime/geometry/norm.h"
#include "backends/vulkan/dispatch/split.h"
#include "backends/vulkan/steps/reduce.h"

namespace librt::vulkan {
namespace {

struct Channels {
  int64_t samples, channels;
};
Channels channels_of(const Shape& shape) {
  return {shape.elements(0, shape.rank() - 1), shape.back()};
}

Status all_f32(const NodeView& node) {
  for (size_t i = 0; i < node.input_count(); ++i)
    if (node.has(i) && node.dtype(i) != DType::F32)
      return unsupported("input ", i, " of type ", name_of(node.dtype(i)), ", only f32 is supported");
  return {};
}

Status batch_norm_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  return all_f32(node);
}

/// The elementwise part: `form` as in batch_norm.comp.
Step& add_apply(Program& program, const VulkanDevice& device, uint32_t form, const Channels& of,
                float epsilon) {
  const int64_t width = of.channels % 4 == 0 ? 4 : 1;
  const int64_t count = of.samples * of.channels / width;
  return program.dispatch_each(Shader::batch_norm, count, device.plan().elementwise_lanes)
      .spec(form)
      .spec(static_cast<uint64_t>(width))
      .push(count)
      .push(of.channels)
      .push(epsilon)
      .push(of.samples == 0 ? 0.0f : 1.0f / static_cast<float>(of.samples));
}

Result<KernelPtr> create_batch_norm(Device& device, const NodeView& node, std::span<const LayoutId>) {
  auto program = std::make_unique<Program>("batch_norm");
  add_apply(*program, cast(device), 0, channels_of(node.shape(0)), node.as<op::BatchNormAttributes>().epsilon)
      .read(0, in(0))
      .write(1, out(0))
      .read(2, in(1))
      .read(3, in(2))
      .read(4, in(3))
      .read(5, in(4));
  program->in_place(0);
  return finish(std::move(program));
}

Result<KernelPtr> create_batch_norm_train(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const VulkanDevice& vulkan = cast(device);
  const auto& attributes = node.as<op::BatchNormTrainAttributes>();
  const Channels of = channels_of(node.shape(0));
  const float inverse_n = 1.0f / static_cast<float>(of.samples);
  auto program = std::make_unique<Program>("batch_norm_train");
  const Ref variance = program->scratch(static_cast<uint64_t>(of.channels) * sizeof(float));
  // About the first sample: the sum of values far from zero would lose the digits in which they differ.
  add_column_reduce(*program, vulkan,
                    {.rows = of.samples,
                     .columns = of.channels,
                     .scale = inverse_n,
                     .map = of.samples > 0 ? ColumnMap::Deviation : ColumnMap::None,
                     .adds_center = of.samples > 0,
                     .center = in(0)},
                    in(0), out(3));
  add_column_reduce(*program, vulkan,
                    {.rows = of.samples,
                     .columns = of.channels,
                     .scale = inverse_n,
                     .map = ColumnMap::SquaredDeviation,
                     .center = out(3)},
                    in(0), variance);
  const auto n = static_cast<float>(of.samples);
  program->dispatch_each(Shader::batch_norm_statistics, of.channels, 64)
      .push(of.channels)
      .push(attributes.epsilon)
      .push(attributes.momentum)
      .push(static_cast<float>(1.0 - static_cast<double>(attributes.momentum)))
      .push(attributes.unbiased ? n / (n - 1) : 1.0f)
      .read(0, out(3))
      .read(1, variance)
      .read(2, in(3))
      .read(3, in(4))
      .write(4, out(1))
      .write(5, out(2))
      .write(6, out(4));
  add_apply(*program, vulkan, 1, of, attributes.epsilon)
      .read(0, in(0))
      .write(1, out(0))
      .read(2, in(1))
      .read(3, in(2))
      .read(4, out(3))
      .read(5, out(4));
  return finish(std::move(program));
}

Result<KernelPtr> create_batch_norm_grad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const VulkanDevice& vulkan = cast(device);
  const Channels of = channels_of(node.shape(0));
  auto program = std::make_unique<Program>("batch_norm_grad");
  add_column_reduce(*program, vulkan, {.rows = of.samples, .columns = of.channels}, in(1), out(2));
  add_column_reduce(*program, vulkan,
                    {.rows = of.samples,
                     .columns = of.channels,
                     .map = ColumnMap::ByColumn,
                     .center = in(3),
                     .z = in(0),
                     .factor = in(4)},
                    in(1), out(1));
  add_apply(*program, vulkan, 2, of, 0)
      .read(0, in(0))
      .write(1, out(0))
      .read(2, in(2))
      .read(3, out(2))
      .read(4, in(3))
      .read(5, in(4))
      .read(6, in(1))
      .read(7, out(1));
  return finish(std::move(program));
}

Status norm_supports(const Device& device, const NodeView& node) {
  RT_TRY(all_f32(node));
  const auto form = norm_form(node);
  if (!form) return unsupported("an axis outside the input's rank");
  for (size_t i = form->scale; i < node.input_count(); ++i)
    if (node.has(i) && !form->covers(node, i) && node.input(i).elements() != 1)
      return unsupported("a scale or bias that broadcasts over some of the normalized axes");
  if (node.kind() == OpKind::LayerNormGrad) return fits(device, node);
  const int64_t row_bytes[] = {form->columns * static_cast<int64_t>(sizeof(float))};
  return form->columns == 0 ? Status() : rows_fit(device, form->rows, row_bytes);
}

int step_of(const NodeView& node, size_t i) {
  return node.has(i) && node.input(i).elements() != 1 ? 1 : 0;
}

Result<KernelPtr> create_norm(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const NormForm form = *norm_form(node);
  auto program = std::make_unique<Program>("layer_norm");
  program->in_place(0);
  if (form.columns == 0) return finish(std::move(program));
  const int64_t row_bytes[] = {form.columns * static_cast<int64_t>(sizeof(float))};
  for (const Rows& part : ranges_of_rows(cast(device), form.rows, row_bytes)) {
    Step& step = program->dispatch(Shader::layer_norm, static_cast<uint64_t>(part.count),
                                   cast(device).plan().row_lanes);
    step.loops(3 * ceil_div(form.columns, cast(device).plan().row_lanes));
    step.spec(node.has(1)).spec(node.has(2)).spec(form.centered);
    step.push(part.count).push(form.columns).push(form.epsilon).push(step_of(node, 1)).push(step_of(node, 2));
    step.read(0, rows_of(in(0), part, row_bytes[0])).write(1, rows_of(out(0), part, row_bytes[0]));
    if (node.has(1)) step.read(2, in(1));
    if (node.has(2)) step.read(3, in(2));
  }
  return finish(std::move(program));
}

/// (x, grad_y, [scale]) -> (grad_x, grad_scale, grad_bias)
Result<KernelPtr> create_norm_grad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const VulkanDevice& vulkan = cast(device);
  const NormForm form = *norm_form(node);
  auto program = std::make_unique<Program>("layer_norm_grad");
  if (form.columns == 0) return finish(std::move(program));
  const uint64_t bytes = std::max<uint64_t>(static_cast<uint64_t>(form.rows) * sizeof(float), sizeof(float));
  const Ref means = program->scratch(bytes), factors = program->scratch(bytes);
  Step& step =
      program->dispatch(Shader::layer_norm_grad, static_cast<uint64_t>(form.rows), vulkan.plan().row_lanes);
  step.loops(4 * ceil_div(form.columns, vulkan.plan().row_lanes));
  step.spec(node.has(2)).spec(false).spec(form.centered);
  step.push(form.rows).push(form.columns).push(form.epsilon).push(step_of(node, 2));
  step.read(0, in(0)).write(1, out(0)).read(3, in(1)).write(4, means).write(5, factors);
  if (node.has(2)) step.read(2, in(2));
  const ColumnReduce sums{.rows = form.rows, .columns = form.columns};
  ColumnReduce products = sums;
  products.map = ColumnMap::ByRow;
  products.center = means;
  products.z = in(0);
  products.factor = factors;
  add_column_reduce(*program, vulkan, products, in(1), out(1));
  add_column_reduce(*program, vulkan, sums, in(1), out(2));
  return finish(std::move(program));
}

constexpr DTypeSet kF32{DType::F32};
constexpr KernelRow kRows[] = {
    row<create_batch_norm, batch_norm_supports>(OpKind::BatchNorm, "batch_norm", kF32),
    row<create_batch_norm_train, batch_norm_supports>(OpKind::BatchNormTrain, "batch_norm_train", kF32),
    row<create_batch_norm_grad, batch_norm_supports>(OpKind::BatchNormGrad, "batch_norm_grad", kF32),
    row<create_norm, norm_supports>(OpKind::LayerNorm, "layer_norm", kF32),
    row<create_norm, norm_supports>(OpKind::RmsNorm, "rms_norm", kF32),
    row<create_norm_grad, norm_supports>(OpKind::LayerNormGrad, "layer_norm_grad", kF32),
};

}  // namespace

std::span<const KernelRow> rows_norm() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
