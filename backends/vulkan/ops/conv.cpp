// Conv, ConvTranspose and ConvWeightGrad: implicit GEMM by cooperative matrices, Winograd, tiled if channels
// are whole vec4s (or can be padded), depthwise, and a direct kernel for every other shape.
#include <algorithm>
#include <cmath>

#include "backends/vulkan/steps/conv.h"
#include "backends/vulkan/steps/gemm.h"
#include "backends/vulkan/steps/reduce.h"
#include "backends/vulkan/steps/winograd.h"

namespace librt::vulkan {
namespace {

const void* constant_of(const NodeView& node, size_t i) {
  return node.inputs[i].value;
}

// --- Conv

Result<ConvSides> conv_of(const NodeView& node) {
  RT_ASSIGN(const ConvGeometry geometry,
            conv_geometry(node.shape(0), node.shape(1), node.as<op::ConvAttributes>()));
  return conv_sides(geometry, false);
}

Status anything(const ConvSides&) {
  return {};
}

using AddConv = void (*)(Program&, const VulkanDevice&, const ConvSides&, const ConvOperands&,
                         const EpiloguePlan&);

template <Status (*kSupports)(const ConvSides&), AddConv kAdd>
Result<KernelPtr> build_conv(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(storable(device, node.dtype(0)));
  RT_ASSIGN(const ConvSides sides, conv_of(node));
  RT_TRY(kSupports(sides));
  auto program = std::make_unique<Program>("conv");
  const EpiloguePlan epilogue = plan_epilogue(node.as<op::ConvAttributes>().epilogue.get(), node, 2);
  kAdd(*program, device, sides, {in(0), in(1), out(0), constant_of(node, 1), node.dtype(0)}, epilogue);
  if (program->requirements().packed > 0) program->replaces(1);
  return finish(std::move(program));
}

Result<KernelPtr> build_winograd(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const ConvSides sides, conv_of(node));
  RT_TRY(winograd_supports(device, sides));
  const auto* const weight = static_cast<const float*>(constant_of(node, 1));
  if (weight == nullptr) return unsupported("the weights must be constant");
  const std::span<const float> weights(weight, static_cast<size_t>(node.shape(1).elements()));
  if (!std::ranges::all_of(weights, [](float value) { return std::isfinite(value); }))
    return unsupported("a weight is not finite");
  auto program = std::make_unique<Program>("conv");
  add_winograd_conv(*program, device, sides, {in(0), in(1), out(0), weight, DType::F32},
                    plan_epilogue(node.as<op::ConvAttributes>().epilogue.get(), node, 2));
  program->replaces(1);
  return finish(std::move(program));
}

/// A convolution of one tap is a matmul of pixels by channels.
Result<KernelPtr> build_pointwise(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(storable(device, node.dtype(0)));
  RT_ASSIGN(const ConvSides sides, conv_of(node));
  if (!sides.pointwise() || sides.groups != 1 || sides.in_channels % 4 != 0)
    return unsupported("expected a pointwise convolution of one group, channels a multiple of 4");
  TiledGemm gemm{.dtype = node.dtype(0),
                 .matrices = true,
                 .m = sides.out_pixels(),
                 .n = sides.out_channels,
                 .k = sides.in_channels};
  RT_TRY(matrices_support(device, gemm.dtype, gemm.m, gemm.n));
  gemm.a = {.ref = in(0), .row_stride = gemm.k / 4};
  gemm.b = {.ref = in(1), .transposed = true, .row_stride = gemm.k / 4};
  gemm.bias_column = 1;
  gemm.epilogue = plan_epilogue(node.as<op::ConvAttributes>().epilogue.get(), node, 2);
  auto program = std::make_unique<Program>("conv");
  add_gemm(*program, device, gemm, out(0));
  return finish(std::move(program));
}

/// One of several taps is an implicit GEMM of windows by weights.
Result<KernelPtr> build_windows(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(storable(device, node.dtype(0)));
  RT_ASSIGN(const ConvSides sides, conv_of(node));
  if (sides.pointwise()) return unsupported("a pointwise convolution is a plain matmul");
  RT_TRY(matrix_conv_supports(device, sides, node.dtype(0)));
  auto program = std::make_unique<Program>("conv");
  add_matrix_conv(*program, device, sides, {in(0), in(1), out(0), constant_of(node, 1), node.dtype(0)},
                  plan_epilogue(node.as<op::ConvAttributes>().epilogue.get(), node, 2));
  return finish(std::move(program));
}

// --- ConvTranspose

Result<ConvSides> transpose_of(const NodeView& node) {
  std::optional<std::span<const int64_t>> output_size;
  if (node.has(2)) {
    RT_TRY(known_on_host(node, 2, "output_size"));
    output_size = node.ints(2);
  }
  RT_ASSIGN(const ConvGeometry geometry,
            conv_transpose_geometry(node.shape(0), node.shape(1), node.as<op::ConvTransposeAttributes>(),
                                    output_size));
  return conv_sides(geometry, true);
}

template <Status (*kSupports)(const ConvSides&), AddConv kAdd>
Result<KernelPtr> build_transpose(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(storable(device, node.dtype(0)));
  RT_ASSIGN(const ConvSides sides, transpose_of(node));
  RT_TRY(kSupports(sides));
  auto program = std::make_unique<Program>("conv_transpose");
  EpiloguePlan epilogue;
  epilogue.has_bias = node.has(3);
  epilogue.bias = 3;
  kAdd(*program, device, sides, {in(0), in(1), out(0), constant_of(node, 1), node.dtype(0)}, epilogue);
  if (program->requirements().packed > 0) program->replaces(1);
  if (node.has(2)) program->replaces(2);
  return finish(std::move(program));
}

// --- ConvWeightGrad

Result<ConvSides> weight_grad_of(const NodeView& node) {
  RT_ASSIGN(const ConvGeometry geometry,
            conv_weight_grad_geometry(node.shape(0), node.shape(1), node.as<op::ConvWeightGradAttributes>()));
  return conv_sides(geometry, false);
}

Status tiled_weight_grad_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const ConvSides sides, weight_grad_of(node));
  if (sides.groups > 1 && sides.group_out() % 4 != 0)
    return unsupported("groups of ", sides.group_out(), " output channels, expected a multiple of 4");
  return tiled_conv_supports(sides);
}

Status direct_weight_grad_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  return weight_grad_of(node).status();
}

/// Number of pixel ranges (split-K), so that `pieces` independent pieces of work occupy the device.
int64_t split_count(const VulkanDevice& device, int64_t pieces, int64_t pixels, int64_t weights) {
  const int64_t wanted = device.plan().texel_loads ? 16 : 16384;
  int64_t splits =
      std::clamp<int64_t>(ceil_div(wanted, std::max<int64_t>(pieces, 1)), 1, ceil_div(pixels, 32));
  if (const int64_t longest = device.plan().most_iterations; longest > 0)
    splits = std::max(splits, ceil_div(pixels, longest));
  // The partial sums must fit in one binding.
  const auto most = static_cast<int64_t>(device.plan().max_binding_bytes / sizeof(float));
  return std::max<int64_t>(1, std::min(splits, most / std::max<int64_t>(weights, 1)));
}

Result<KernelPtr> create_tiled_weight_grad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const ConvSides sides, weight_grad_of(node));
  const VulkanDevice& vulkan = cast(device);
  auto program = std::make_unique<Program>("conv_weight_grad");
  const int64_t in_pixels = sides.batch * sides.in_extent[0] * sides.in_extent[1];
  const int64_t pixels = sides.out_pixels();
  const auto padded = [&](size_t input, int64_t rows, int64_t channels) {
    if (channels % 4 == 0) return in(input);
    return padded_copy(*program, vulkan, in(input),
                       {.extents = {rows, channels},
                        .strides = {channels, 1},
                        .padded_extents = {rows, ceil_div(channels, 4) * 4}},
                       nullptr);
  };
  const Ref x = padded(0, in_pixels, sides.in_channels);
  const Ref grad = padded(1, pixels, sides.out_channels);
  const int64_t in_c4 = ceil_div(sides.in_channels, 4), out_c4 = ceil_div(sides.out_channels, 4);
  const bool texel =
      through_texels(vulkan, static_cast<uint64_t>(std::max(in_pixels * in_c4, pixels * out_c4)) * 16);

  const int64_t columns = sides.group_in() <= 4 ? 4 : 8;
  constexpr int64_t kRows = 8;
  const int64_t lanes = vulkan.plan().tile_lanes;
  const int64_t column_tiles = ceil_div(sides.group_in(), columns);
  const int64_t row_tiles = ceil_div(sides.group_out(), kRows);
  const int64_t lane_groups = ceil_div(column_tiles * sides.taps(), lanes);
  const int64_t weights = sides.out_channels * sides.taps() * sides.group_in();
  const int64_t pieces = lane_groups * row_tiles * sides.groups;
  const int64_t splits =
      split_count(vulkan, vulkan.plan().texel_loads ? pieces : pieces * lanes, pixels, weights);
  const Ref target = splits == 1 ? out(0) : program->scratch(static_cast<uint64_t>(splits * weights) * 4);
  Step& step = program->dispatch(texel ? Shader::conv_weight_grad_texel : Shader::conv_weight_grad_buffer,
                                 static_cast<uint64_t>(pieces * splits), static_cast<uint32_t>(lanes));
  step.loops(ceil_div(pixels, splits));
  step.spec(kRows).spec(static_cast<uint64_t>(columns));
  step.push(pixels)
      .push(sides.out_extent[0])
      .push(sides.out_extent[1])
      .push(sides.in_extent[0])
      .push(sides.in_extent[1]);
  step.push(in_c4).push(out_c4).push(sides.group_in()).push(sides.group_out()).push(sides.groups);
  push_axis_pairs(step, sides);
  step.push(column_tiles).push(row_tiles).push(lane_groups).push(splits);
  step.matrix(0, grad, texel).matrix(1, x, texel).write(2, target);
  if (splits > 1) add_column_reduce(*program, vulkan, {.rows = splits, .columns = weights}, target, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> create_direct_weight_grad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const ConvSides sides, weight_grad_of(node));
  const VulkanDevice& vulkan = cast(device);
  auto program = std::make_unique<Program>("conv_weight_grad");
  const int64_t count = sides.out_channels * sides.taps() * sides.group_in();
  const int64_t splits = split_count(vulkan, count, sides.out_pixels(), count);
  const Ref target = splits == 1 ? out(0) : program->scratch(static_cast<uint64_t>(splits * count) * 4);
  Step& step = program->dispatch_each(Shader::conv_weight_grad_direct, count * splits,
                                      vulkan.plan().elementwise_lanes);
  step.loops(ceil_div(sides.out_pixels(), splits));
  step.push(count).push(splits).push(sides.out_pixels());
  push_sides(step, sides);
  step.read(0, in(0)).read(1, in(1)).write(2, target);
  if (splits > 1) add_column_reduce(*program, vulkan, {.rows = splits, .columns = count}, target, out(0));
  return finish(std::move(program));
}

constexpr DTypeSet kF32{DType::F32};
constexpr DTypeSet kFloats{DType::F32, DType::F16, DType::BF16};

constexpr KernelRow kRowsOfConv[] = {
    built_row<build_pointwise>(OpKind::Conv, "conv.matrices", DTypeSet{DType::F16}, 15),
    built_row<build_windows>(OpKind::Conv, "conv.matrix_windows", DTypeSet{DType::F16}, 15),
    built_row<build_conv<depthwise_supports, add_depthwise_conv>>(OpKind::Conv, "conv.depthwise", kFloats,
                                                                  20),
    built_row<build_winograd>(OpKind::Conv, "conv.winograd", kF32, 12),
    built_row<build_conv<tiled_conv_supports, add_tiled_conv>>(OpKind::Conv, "conv.tiled", kFloats, 10),
    built_row<build_conv<anything, add_direct_conv>>(OpKind::Conv, "conv.direct", kF32, 0),
    built_row<build_transpose<tiled_conv_supports, add_tiled_conv>>(OpKind::ConvTranspose,
                                                                    "conv_transpose.tiled", kFloats, 10),
    built_row<build_transpose<anything, add_direct_conv>>(OpKind::ConvTranspose, "conv_transpose.direct",
                                                          kF32, 0),
    row<create_tiled_weight_grad, tiled_weight_grad_supports>(OpKind::ConvWeightGrad,
                                                              "conv_weight_grad.tiled", kF32, 10),
    row<create_direct_weight_grad, direct_weight_grad_supports>(OpKind::ConvWeightGrad,
                                                                "conv_weight_grad.direct", kF32, 0),
};

}  // namespace

std::span<const KernelRow> rows_conv() {
  return rows_in_build<kRowsOfConv>();
}

}  // namespace librt::vulkan
