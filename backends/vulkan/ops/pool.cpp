// Pools and their gradients, in up to three spatial dimensions.
#include <algorithm>

#include "backends/vulkan/steps/repack.h"
#include "runtime/geometry/windows.h"

namespace librt::vulkan {
namespace {

int64_t width_of(const PoolGeometry& geometry) {
  return geometry.channels % 4 == 0 ? 4 : 1;
}

int64_t input_elements(const PoolGeometry& geometry) {
  return geometry.input_shape().elements();
}
int64_t output_elements(const PoolGeometry& geometry) {
  return geometry.output_shape().elements();
}

/// The parameter block of windows.glsl. each: groups of `width` elements that an invocation computes.
Step& add_windows(Program& program, const VulkanDevice& device, Shader shader, uint32_t mode,
                  const PoolGeometry& geometry, int64_t elements, bool count_include_pad, int64_t width,
                  int64_t each = 1) {
  const int64_t count = elements / width;
  Step& step = program.dispatch_each(shader, ceil_div(count, each),
                                     std::min<uint32_t>(device.plan().elementwise_lanes, 64));
  // Over the taps of a window, or the windows that reach over an element.
  int64_t loops = 1;
  for (const WindowAxis& axis : geometry.axes)
    loops *= std::max(axis.kernel, axis.reach() / axis.stride + 1) + 1;
  step.loops(loops);
  step.spec(mode).spec(static_cast<uint64_t>(width)).push(count).push(geometry.channels / width);
  for (const WindowAxis& axis : geometry.axes) step.push(axis.input);
  for (const WindowAxis& axis : geometry.axes) step.push(axis.output);
  for (const WindowAxis& axis : geometry.axes) step.push(axis.kernel);
  for (const WindowAxis& axis : geometry.axes) step.push(axis.stride);
  for (const WindowAxis& axis : geometry.axes) step.push(axis.pad_begin);
  for (const WindowAxis& axis : geometry.axes) step.push(axis.dilation);
  for (const WindowAxis& axis : geometry.axes) step.push(axis.input + (count_include_pad ? axis.pad_end : 0));
  for (const WindowAxis& axis : geometry.axes) step.push(count_include_pad ? -axis.pad_begin : 0);
  return step;
}

Step& add_windows(Program& program, const VulkanDevice& device, Shader shader, uint32_t mode,
                  const PoolGeometry& geometry, int64_t elements, bool count_include_pad) {
  return add_windows(program, device, shader, mode, geometry, elements, count_include_pad,
                     width_of(geometry));
}

/// A pool over input 0, of f32, f16 or bf16.
Step& add_pool(Program& program, const VulkanDevice& device, uint32_t mode, const PoolGeometry& geometry,
               bool count_include_pad, DType dtype = DType::F32) {
  const size_t element = size_of(dtype);
  const auto bytes = static_cast<uint64_t>(input_elements(geometry)) * element;
  const bool texel = width_of(geometry) == 4 && through_texels(device, bytes, element);
  constexpr Shader kShaders[2][2] = {{Shader::pool_buffer, Shader::pool_texel},
                                     {Shader::pool_halves_buffer, Shader::pool_halves_texel}};
  Step& step = add_windows(program, device, kShaders[dtype != DType::F32][texel], mode, geometry,
                           output_elements(geometry), count_include_pad);
  const auto& [z, y, x] = geometry.axes;
  const bool small = z.kernel * y.kernel * x.kernel <= 9;
  for (const WindowAxis& axis : geometry.axes) step.spec(small ? static_cast<uint64_t>(axis.kernel) : 0);
  step.spec(element_of(dtype));
  return step.matrix(0, in(0), texel, element);
}

template <class Attributes>
Status supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(storable(device, node.dtype(0)));
  return pool_geometry(node.shape(0), node.as<Attributes>()).status();
}

Status quantized_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  return pool_geometry(node.shape(0), node.as<op::MaxPoolAttributes>()).status();
}

Result<KernelPtr> create_max(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), node.as<op::MaxPoolAttributes>()));
  auto program = std::make_unique<Program>("max_pool");
  add_pool(*program, cast(device), 0, geometry, false, node.dtype(0)).write(1, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> create_max_quantized(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(PoolGeometry geometry, pool_geometry(node.shape(0), node.as<op::MaxPoolAttributes>()));
  auto program = std::make_unique<Program>("max_pool_quantized");
  add_windows(*program, cast(device), Shader::pool_quantized, 0, geometry, output_elements(geometry), false,
              1, 4)
      .spec(node.dtype(0) == DType::I8)
      .read(0, in(0))
      .write(1, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> create_max_indices(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<op::MaxPoolIndicesAttributes>();
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), attributes));
  const VulkanDevice& vulkan = cast(device);
  const int64_t count = output_elements(geometry);
  auto program = std::make_unique<Program>("max_pool_indices");
  const Ref where = program->scratch(static_cast<uint64_t>(count) * sizeof(uint32_t));
  add_pool(*program, vulkan, 2, geometry, false).write(1, where);
  const auto& [z, y, x] = geometry.axes;
  program->dispatch_each(Shader::pool_positions, count, vulkan.plan().elementwise_lanes)
      .spec(attributes.column_major)
      .push(count)
      .push(geometry.channels)
      .push(z.output * y.output * x.output)
      .push(z.input)
      .push(y.input)
      .push(x.input)
      .read(0, where)
      .write(1, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> create_average(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<op::AveragePoolAttributes>();
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), attributes));
  auto program = std::make_unique<Program>("average_pool");
  add_pool(*program, cast(device), 1, geometry, attributes.count_include_pad, node.dtype(0)).write(1, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> create_max_grad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), node.as<op::MaxPoolGradAttributes>()));
  const VulkanDevice& vulkan = cast(device);
  auto program = std::make_unique<Program>("max_pool_grad");
  const Ref where = program->scratch(static_cast<uint64_t>(output_elements(geometry)) * sizeof(uint32_t));
  add_pool(*program, vulkan, 2, geometry, false).write(1, where);
  add_windows(*program, vulkan, Shader::pool_grad, 0, geometry, input_elements(geometry), false)
      .read(0, in(1))
      .write(1, out(0))
      .read(2, where);
  return finish(std::move(program));
}

Result<PoolGeometry> average_grad_geometry(const NodeView& node) {
  RT_TRY(known_on_host(node, 0, "input_shape"));
  return pool_geometry(Shape(node.ints(0)), node.as<op::AveragePoolGradAttributes>());
}

Status average_grad_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  if (node.dtype(1) != DType::F32) return unsupported("grad_output of type ", name_of(node.dtype(1)));
  return average_grad_geometry(node).status();
}

Result<KernelPtr> create_average_grad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const PoolGeometry geometry, average_grad_geometry(node));
  auto program = std::make_unique<Program>("average_pool_grad");
  Step& step = add_windows(*program, cast(device), Shader::pool_grad, 1, geometry, input_elements(geometry),
                           node.as<op::AveragePoolGradAttributes>().count_include_pad);
  step.read(0, in(1)).write(1, out(0)).read(2, in(1));
  program->replaces(0);
  return finish(std::move(program));
}

constexpr DTypeSet kF32{DType::F32}, kFloats{DType::F32, DType::F16, DType::BF16};
constexpr KernelRow kRows[] = {
    row<create_max, supports<op::MaxPoolAttributes>>(OpKind::MaxPool, "max_pool", kFloats),
    row<create_max_quantized, quantized_supports>(OpKind::MaxPool, "max_pool.quantized",
                                                  DTypeSet{DType::U8, DType::I8}),
    row<create_max_indices, supports<op::MaxPoolIndicesAttributes>>(OpKind::MaxPoolIndices,
                                                                    "max_pool_indices", kF32),
    row<create_average, supports<op::AveragePoolAttributes>>(OpKind::AveragePool, "average_pool", kFloats),
    row<create_max_grad, supports<op::MaxPoolGradAttributes>>(OpKind::MaxPoolGrad, "max_pool_grad", kF32),
    row<create_average_grad, average_grad_supports>(OpKind::AveragePoolGrad, "average_pool_grad",
                                                    DTypeSet{DType::I64}),
};

}  // namespace

std::span<const KernelRow> rows_pool() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
