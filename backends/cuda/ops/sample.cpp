// GridSample, RoiAlign and its gradient in f32.
#include "kernels/sample.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Status supports_grid(const CudaDevice&, const NodeView& node) {
  if (node.dtype(1) != DType::F32)
    return unsupported("coordinates of ", name_of(node.dtype(1)), "; only f32");
  return {};
}

SampleMode mode_of(op::ResizeMode mode) {
  switch (mode) {
    case op::ResizeMode::Nearest: return SampleMode::Nearest;
    case op::ResizeMode::Linear: return SampleMode::Linear;
    case op::ResizeMode::Cubic: break;
  }
  return SampleMode::Cubic;
}

SamplePadding padding_of(op::GridSamplePadding padding) {
  switch (padding) {
    case op::GridSamplePadding::Zeros: return SamplePadding::Zeros;
    case op::GridSamplePadding::Border: return SamplePadding::Border;
    case op::GridSamplePadding::Reflection: break;
  }
  return SamplePadding::Reflection;
}

Result<KernelPtr> create_grid(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::GridSampleAttributes>();
  const Shape &x = node.shape(0), &grid = node.shape(1);
  GridSampleArguments arguments{.mode = mode_of(attributes.mode),
                                .padding = padding_of(attributes.padding),
                                .align_corners = attributes.align_corners,
                                .rank = x.rank() - 2,
                                .batch = grid[0],
                                .samples = grid.elements(1, grid.rank() - 1),
                                .channels = x.back()};
  for (int d = 0; d < arguments.rank; ++d) arguments.extents[d] = x[d + 1];
  return make_kernel([arguments](const Call& call) {
    GridSampleArguments a = arguments;
    a.data = call.in<float>(0);
    a.grid = call.in<float>(1);
    a.result = call.out<float>();
    return grid_sample(a, call.stream);
  });
}

/// `result` is RoiAlign's.
template <class Attributes>
RoiAlignArguments roi_arguments(const NodeView& node, const Shape& result) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  return {.wide_batch = node.dtype(2) == DType::I64,
          .maximum = attributes.maximum,
          .half_pixel = attributes.half_pixel,
          .sampling_ratio = attributes.sampling_ratio,
          .spatial_scale = attributes.spatial_scale,
          .images = x[0],
          .height = x[1],
          .width = x[2],
          .channels = x[3],
          .regions = result[0],
          .rows = result[1],
          .columns = result[2]};
}

RoiAlignArguments bound(RoiAlignArguments arguments, const Call& call) {
  arguments.data = call.in<float>(0);
  arguments.corners = call.in<float>(1);
  arguments.batch = call.in(2);
  return arguments;
}

Result<KernelPtr> create_roi(CudaDevice&, const NodeView& node) {
  const auto arguments = roi_arguments<op::RoiAlignAttributes>(node, node.output(0).shape);
  return make_kernel([arguments](const Call& call) {
    RoiAlignArguments a = bound(arguments, call);
    a.result = call.out<float>();
    return roi_align(a, call.stream);
  });
}

Result<KernelPtr> create_roi_grad(CudaDevice&, const NodeView& node) {
  const auto arguments = roi_arguments<op::RoiAlignGradAttributes>(node, node.shape(3));
  return make_kernel([arguments](const Call& call) {
    return roi_align_grad(bound(arguments, call), call.in<float>(3), call.out<float>(), call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_sample();
std::span<const KernelRow> rows_sample() {
  constexpr DTypeSet kF32{DType::F32};
  static constexpr KernelRow kRows[] = {
      row<create_grid, supports_grid>(OpKind::GridSample, "grid_sample", kF32),
      row<create_roi>(OpKind::RoiAlign, "roi_align", kF32),
      row<create_roi_grad>(OpKind::RoiAlignGrad, "roi_align_grad", kF32),
  };
  return kRows;
}

}  // namespace librt::cuda
