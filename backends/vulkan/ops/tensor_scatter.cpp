// TensorScatter: writes rows into a cache, in place.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  return size_of(node.dtype(0)) >= sizeof(uint32_t) ? Status() : storable(device, node.dtype(0));
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<op::TensorScatterAttributes>();
  const Shape &cache = node.shape(0), &update = node.shape(1);
  const auto axis = normalized_axis(attributes.axis, cache.rank());
  if (!axis) return unsupported("axis ", attributes.axis, " of ", cache.rank());
  const size_t size = size_of(node.dtype(0));
  const Shader shader = size == 1   ? Shader::tensor_scatter_1
                        : size == 2 ? Shader::tensor_scatter_2
                        : size == 4 ? Shader::tensor_scatter_4
                                    : Shader::tensor_scatter_8;
  auto program = std::make_unique<Program>("tensor_scatter");
  program->copy(out(0), in(0));
  Step& step = program->dispatch_each(shader, update.elements(), cast(device).plan().elementwise_lanes);
  step.spec(node.has(2)).spec(attributes.circular);
  step.push(update.elements()).push(cache.elements(1, *axis)).push(cache[*axis]).push(update[*axis]);
  step.push(cache.elements(*axis + 1, cache.rank())).push(node.has(2) && node.dtype(2) == DType::I64 ? 2 : 1);
  step.read(0, in(1)).write(1, out(0));
  if (node.has(2)) step.read(2, in(2));
  program->in_place(0);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::TensorScatter, "tensor_scatter", kAnyDType),
};

}  // namespace

std::span<const KernelRow> rows_tensor_scatter() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
