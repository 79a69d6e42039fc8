#include "backends/cpu/support/winograd.h"

#include "backends/cpu/simd/winograd.h"

namespace librt::cpu {
namespace {

/// Fewer tiles leave much of a block unused; with more, oneDNN's kernels are faster.
constexpr int64_t kLeastTiles = 24, kMostTiles = 128;

/// The shape of the convolution itself, or of the one that computes its data gradient from grad_output.
WinogradShape shape_of(const ConvGeometry& g, bool back) {
  const WindowAxis &rows = g.axes[0], &columns = g.axes[1];
  if (back)
    return {g.batch,       rows.output,      columns.output,     g.output_channels,    rows.input,
            columns.input, g.input_channels, 2 - rows.pad_begin, 2 - columns.pad_begin};
  return {g.batch,        rows.input,        columns.input,  g.input_channels, rows.output,
          columns.output, g.output_channels, rows.pad_begin, columns.pad_begin};
}

/// f(item, the workspace of its thread) for all items.
template <class F>
void for_each_item(int64_t items, float* workspaces, int64_t workspace, const F& f) noexcept {
  const int parts = max_threads();
  parallel_parts(parts, [&](int part) noexcept {
    const Range range = part_of(items, part, parts);
    for (int64_t item = range.begin; item < range.end; ++item) f(item, workspaces + part * workspace);
  });
}

/// f(block of tiles, first channel, workspace) for all patches of 16 channels.
template <class F>
void for_each_patch(const WinogradShape& shape, int64_t channels, float* workspaces, const F& f) noexcept {
  const int64_t groups = channels / 16;
  for_each_item(
      shape.tile_blocks() * groups, workspaces, shape.workspace(),
      [&](int64_t item, float* workspace) noexcept { f(item / groups, item % groups * 16, workspace); });
}

}  // namespace

Status supports_winograd_cached(const CpuDevice& device, const ConvGeometry& g) {
  if (device.simd().loops<WinogradLoops>().convolve == nullptr)
    return unsupported("this kernel needs AVX-512");
  if (g.rank != 2 || g.groups != 1) return unsupported("Winograd needs two spatial axes and one group");
  for (size_t i = 0; i < 2; ++i) {
    const WindowAxis& axis = g.axes[i];
    if (axis.kernel != 3 || axis.stride != 1 || axis.dilation != 1 || axis.pad_begin > 1 ||
        axis.effective_pad_end() > 1)
      return unsupported("Winograd needs 3x3 windows with stride 1 and padding of at most 1");
  }
  if (g.input_channels % 64 != 0 || g.output_channels % 64 != 0)
    return unsupported("channels must be multiples of 64, not ", g.input_channels, " and ",
                       g.output_channels);
  const int64_t tiles = std::min(shape_of(g, false).tiles(), shape_of(g, true).tiles());
  const int64_t most = std::max(shape_of(g, false).tiles(), shape_of(g, true).tiles());
  if (tiles < kLeastTiles || most > kMostTiles)
    return unsupported("needs ", kLeastTiles, " to ", kMostTiles, " tiles of 4x4, not ", tiles);
  return {};
}

KernelPtr make_winograd_cached(const CpuDevice& device, OpKind kind, const ConvGeometry& geometry) {
  const bool back = kind == OpKind::ConvTranspose, weights = kind == OpKind::ConvWeightGrad;
  const WinogradShape shape = shape_of(geometry, back);
  const WinogradLoops* loops = &device.simd().loops<WinogradLoops>();
  const int64_t patches = shape.transformed(shape.channels);
  const int64_t results = weights ? shape.transformed(shape.out_channels) : 0;
  Requirements requirements;
  requirements.scratch =
      static_cast<size_t>(patches + results + device.info().threads * shape.workspace()) * sizeof(float);
  return make_kernel(
      [=](const Call& call) noexcept {
        const float *x = call.in<float>(0), *second = call.in<float>(1);
        float *v = call.scratch<float>(), *dv = v + patches, *workspaces = dv + results;
        for_each_patch(shape, shape.channels, workspaces,
                       [&](int64_t block, int64_t channel, float* workspace) noexcept {
                         loops->transform_patches(shape, x, v, block, channel, !back && !weights, workspace);
                       });
        if (weights)
          for_each_patch(shape, shape.out_channels, workspaces,
                         [&](int64_t block, int64_t channel, float*) noexcept {
                           loops->transform_results(shape, second, dv, block, channel);
                         });
        for_each_item(shape.out_channels / WinogradShape::kOutBlock, workspaces, shape.workspace(),
                      [&](int64_t item, float* workspace) noexcept {
                        const int64_t first = item * WinogradShape::kOutBlock;
                        if (weights)
                          loops->weight_gradient(shape, v, dv, call.out<float>(), first, workspace);
                        else
                          (back ? loops->convolve_back : loops->convolve)(shape, v, second, call.out<float>(),
                                                                          first, workspace);
                      });
      },
      requirements);
}

}  // namespace librt::cpu
