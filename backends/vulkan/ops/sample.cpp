// GridSample, RoiAlign and its gradient, one invocation per element of the result.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

constexpr int kMaxSpatial = 3;

Status supports_grid(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  if (node.dtype(1) != DType::F32) return unsupported("coordinates of ", name_of(node.dtype(1)));
  if (node.shape(0).rank() - 2 > kMaxSpatial) return unsupported(node.shape(0).rank() - 2, " spatial axes");
  return {};
}

Result<KernelPtr> create_grid(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<op::GridSampleAttributes>();
  const Shape& x = node.shape(0);
  const int axes = x.rank() - 2;
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("grid_sample");
  program->dispatch_each(Shader::grid_sample, count, cast(device).plan().elementwise_lanes)
      .spec(static_cast<uint64_t>(axes))
      .spec(static_cast<uint64_t>(attributes.mode))
      .spec(static_cast<uint64_t>(attributes.padding))
      .spec(attributes.align_corners)
      .push(count)
      .push(x.back())
      .push(node.shape(1).elements(1, axes + 1))
      .push(x[1])
      .push(axes > 1 ? x[2] : 1)
      .push(axes > 2 ? x[3] : 1)
      .read(0, in(0))
      .write(1, out(0))
      .read(2, in(1));
  return finish(std::move(program));
}

Status supports_roi(const Device& device, const NodeView& node) {
  return fits(device, node);
}

/// rois and image indices are inputs 1 and 2; regions of `x` with the bins that `attributes` specify.
template <class Attributes>
Step& add_regions(Program& program, Shader shader, Device& device, const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int64_t count = node.output(0).elements();
  return program.dispatch_each(shader, count, cast(device).plan().elementwise_lanes)
      .spec(attributes.maximum)
      .spec(attributes.half_pixel)
      .push(count)
      .push(x[3])
      .push(x[0])
      .push(x[1])
      .push(x[2])
      .push(attributes.height)
      .push(attributes.width)
      .push(attributes.sampling_ratio)
      .push(static_cast<int64_t>(size_of(node.dtype(2)) / sizeof(int32_t)))
      .push(attributes.spatial_scale)
      .push(node.shape(1)[0])
      .read(0, in(0))
      .write(1, out(0))
      .read(2, in(1))
      .read(3, in(2));
}

Result<KernelPtr> create_roi(Device& device, const NodeView& node, std::span<const LayoutId>) {
  auto program = std::make_unique<Program>("roi_align");
  add_regions<op::RoiAlignAttributes>(*program, Shader::roi_align, device, node);
  return finish(std::move(program));
}

Result<KernelPtr> create_roi_grad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  auto program = std::make_unique<Program>("roi_align_grad");
  add_regions<op::RoiAlignGradAttributes>(*program, Shader::roi_align_grad, device, node).read(4, in(3));
  return finish(std::move(program));
}

constexpr DTypeSet kF32{DType::F32};
constexpr KernelRow kRows[] = {
    row<create_grid, supports_grid>(OpKind::GridSample, "grid_sample", kF32),
    row<create_roi, supports_roi>(OpKind::RoiAlign, "roi_align", kF32),
    row<create_roi_grad, supports_roi>(OpKind::RoiAlignGrad, "roi_align_grad", kF32),
};

}  // namespace

std::span<const KernelRow> rows_sample() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
