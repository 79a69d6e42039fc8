// MatMulInteger, ConvInteger, QuantizedMatMul and QuantizedConv: GEMM of 8-bit integers less their zero
// points, accumulated in i32, with the requantization in the same kernel. Tiled if the packed operands can be
// bound and zero points are per tensor or per row and column; depthwise in blocks of channels; everything
// else element by element.
#include <algorithm>

#include "runtime/geometry/matmul.h"
#include "runtime/geometry/quantization.h"

#include "backends/vulkan/steps/integer_gemm.h"

namespace librt::vulkan {
namespace {

uint64_t flip_of(const NodeView& node, size_t i) {
  return node.dtype(i) == DType::I8 ? 128 : 0;
}
bool is_one_for_all(const NodeView& node, size_t i) {
  return !node.has(i) || node.input(i).elements() == 1;
}
const uint8_t* constant_of(const NodeView& node, size_t i) {
  return static_cast<const uint8_t*>(node.inputs[i].value);
}

/// The zero point at input i: per tensor, or `each` of them.
Result<ZeroPoint> zero_point(const NodeView& node, size_t i, int64_t each) {
  if (!node.has(i)) return ZeroPoint::None;
  if (is_one_for_all(node, i)) return ZeroPoint::One;
  if (node.input(i).elements() != each)
    return unsupported("input ", i, " of ", node.input(i).elements(), " zero points for ", each,
                       " rows or columns");
  return ZeroPoint::Each;
}

Status bindable(const VulkanDevice& device, uint64_t bytes) {
  if (bytes <= device.plan().max_binding_bytes) return {};
  return unsupported("a packed operand of ", bytes_text(bytes), ", the device binds at most ",
                     bytes_text(device.plan().max_binding_bytes), " at once");
}

// --- matmul

/// Input indices of the zero points; 0: absent.
struct ZeroInputs {
  size_t a, b;
};
constexpr ZeroInputs kOfMatMulInteger{2, 3}, kOfQuantized{3, 0};

struct Problem {
  MatMulGeometry g;
  std::vector<int64_t> batch;                   ///< two extents
  std::array<std::vector<int64_t>, 4> strides;  ///< of a, b and their zero points, in matrices
  int64_t za_rows = 1, zb_columns = 1;
};

Shape leading(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<size_t>(std::max(shape.rank() - 2, 0))));
}

Result<Problem> describe_problem(const NodeView& node, const ZeroInputs& zero) {
  Problem problem;
  RT_ASSIGN(problem.g, matmul_geometry(node.shape(0), node.shape(1), {}));
  Shape shapes[4] = {problem.g.a_batch, problem.g.b_batch};
  if (!is_one_for_all(node, zero.a)) {
    shapes[2] = leading(node.shape(zero.a));
    problem.za_rows = node.shape(zero.a)[node.shape(zero.a).rank() - 2];
  }
  if (zero.b != 0 && !is_one_for_all(node, zero.b)) {
    shapes[3] = leading(node.shape(zero.b));
    problem.zb_columns = node.shape(zero.b).back();
  }
  StridedSpace space = broadcast_space(problem.g.batch, shapes);
  if (space.rank() > 2)
    return unsupported("batch dimensions that need ", space.rank(), " axes after collapsing");
  while (space.rank() < 2) {
    space.extents.insert(space.extents.begin(), 1);
    for (auto& strides : space.strides) strides.insert(strides.begin(), 0);
  }
  problem.batch = space.extents;
  for (size_t i = 0; i < 4; ++i) problem.strides[i] = space.strides[i];
  return problem;
}

/// `rows` rows of `k` bytes as a convolution of one tap.
ConvSides as_windows(int64_t rows, int64_t k) {
  ConvSides sides;
  sides.batch = 1;
  sides.in_channels = sides.out_channels = k;
  sides.in_extent = sides.out_extent = {rows, 1, 1};
  for (WindowAxis& axis : sides.axes) axis.kernel = axis.stride = axis.dilation = 1;
  return sides;
}

Result<KernelPtr> build_matmul(const VulkanDevice& device, const NodeView& node, const ZeroInputs& zero,
                               const RequantizePlan& requantize) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const Problem problem, describe_problem(node, zero));
  const MatMulGeometry& g = problem.g;
  const int64_t all = g.batch.elements();
  if (g.m * g.n * g.k * all == 0) return unsupported("an empty matmul");
  IntegerGemm gemm{.m = g.m, .n = g.n, .k = g.k};
  gemm.a_signed = node.dtype(0) == DType::I8;
  gemm.b_signed = node.dtype(1) == DType::I8;
  gemm.requantize = requantize;
  RT_ASSIGN(gemm.zero_a, zero_point(node, zero.a, all * g.m));
  gemm.a_zero = in(zero.a);
  if (zero.b != 0) {
    RT_ASSIGN(gemm.zero_b, zero_point(node, zero.b, g.n));
    gemm.b_zero = in(zero.b);
  }
  auto program = std::make_unique<Program>("matmul_integer");
  const int64_t rows = node.input(0).elements() / g.k, blocks = ceil_div(g.k, kIntegerBlock);
  gemm.a = in(0);
  gemm.a_row = blocks;
  if (g.k % kIntegerBlock != 0) {
    const ConvSides sides = as_windows(rows, g.k);
    RT_TRY(bindable(device, packed_rows_bytes(sides)));
    gemm.a = packed_rows(*program, device, in(0), sides, gemm.a_signed, nullptr);
  }
  const ByteColumns columns{.matrices = node.input(1).elements() / (g.k * g.n),
                            .k = g.k,
                            .n = g.n,
                            .matrix_stride = g.k * g.n,
                            .k_stride = g.n,
                            .n_stride = 1,
                            .is_signed = gemm.b_signed};
  RT_TRY(bindable(device, columns.packed_bytes()));
  gemm.b = packed_columns(*program, device, in(1), columns, constant_of(node, 1));
  if (constant_of(node, 1) != nullptr) program->replaces(1);
  gemm.c_row = g.n;
  if (columns.matrices == 1 && rows == all * g.m) {
    gemm.m = rows;
  } else {
    gemm.batch = problem.batch;
    gemm.c_batch = {problem.batch[1] * g.m * g.n, g.m * g.n};
    for (size_t i = 0; i < 2; ++i) {
      gemm.a_batch[i] = problem.strides[0][i] * g.m * blocks;
      gemm.b_batch[i] = problem.strides[1][i] * blocks * g.n;
    }
  }
  add_integer_gemm(*program, device, gemm, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> build_matmul_integer(const VulkanDevice& device, const NodeView& node) {
  return build_matmul(device, node, kOfMatMulInteger, {});
}
Result<KernelPtr> build_quantized_matmul(const VulkanDevice& device, const NodeView& node) {
  return build_matmul(device, node, kOfQuantized,
                      plan_requantize<op::QuantizedMatMulAttributes>(node, 2, 4, 5, 6));
}

Result<KernelPtr> build_any_matmul(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const Problem problem, describe_problem(node, kOfMatMulInteger));
  const MatMulGeometry& g = problem.g;
  constexpr int64_t kTile = 4;
  const int64_t row_tiles = ceil_div(g.m, kTile), column_tiles = ceil_div(g.n, kTile);
  auto program = std::make_unique<Program>("matmul_integer");
  Step& step = program->dispatch_each(Shader::matmul_integer, g.batch.elements() * row_tiles * column_tiles,
                                      device.plan().elementwise_lanes);
  step.spec(flip_of(node, 0)).spec(flip_of(node, 1)).spec(node.has(2)).spec(node.has(3));
  step.push(g.m).push(g.n).push(g.k).push(row_tiles).push(column_tiles);
  step.push(problem.batch[0]).push(problem.batch[1]);
  const int64_t sizes[] = {g.m * g.k, g.k * g.n, problem.za_rows, problem.zb_columns};
  for (size_t i = 0; i < 4; ++i)
    for (int64_t stride : problem.strides[i]) step.push(stride * sizes[i]);
  step.push(problem.za_rows == 1 ? 0 : 1).push(problem.zb_columns == 1 ? 0 : 1);
  step.read(0, in(0))
      .read(1, in(1))
      .read(2, node.has(2) ? in(2) : in(0))
      .read(3, node.has(3) ? in(3) : in(1));
  step.write(4, out(0));
  return finish(std::move(program));
}

// --- convolutions

/// A ConvInteger or QuantizedConv.
struct IntegerConv {
  ConvSides sides;
  ZeroInputs zero{};
  RequantizePlan requantize{};
};

Result<IntegerConv> describe_conv(const NodeView& node) {
  const bool quantized = node.kind() == OpKind::QuantizedConv;
  RT_ASSIGN(
      const ConvGeometry geometry,
      conv_geometry(node.shape(0), node.shape(1),
                    as_conv(quantized ? as_integer(node.as<op::QuantizedConvAttributes>())
                                      : op::ConvIntegerAttributes(node.as<op::ConvIntegerAttributes>()))));
  IntegerConv conv{.sides = conv_sides(geometry, false)};
  conv.zero = quantized ? kOfQuantized : kOfMatMulInteger;
  if (quantized) conv.requantize = plan_requantize<op::QuantizedConvAttributes>(node, 2, 4, 5, 6);
  return conv;
}

/// With few channels, blocks are mostly padding: if the rows of the kernel, each padded to blocks, take at
/// most twice the blocks of the whole kernel, a row becomes one tap whose channels are the row's bytes.
bool unfolds_rows(const ConvSides& sides) {
  const int64_t row = sides.axes[1].kernel * sides.in_channels, rows = sides.axes[0].kernel;
  return sides.groups == 1 && rows > 1 &&
         rows * ceil_div(row, kIntegerBlock) <= 2 * ceil_div(rows * row, kIntegerBlock);
}

/// An image [N, rows, W', K/16][16] of the windows along its rows, explicitly padded.
struct Unfolded {
  ConvSides rows;     ///< the windows of one row of the kernel
  ConvSides windows;  ///< the convolution over them
};

Unfolded unfold_rows(const ConvSides& sides) {
  Unfolded unfolded{sides, sides};
  const WindowAxis& height = sides.axes[0];
  const int64_t reach = height.position(height.output - 1, height.kernel - 1) + 1 + height.pad_begin;
  WindowAxis& each = unfolded.rows.axes[0];
  each.kernel = each.stride = each.dilation = 1;
  unfolded.rows.out_extent[0] = each.output = reach;
  unfolded.windows.in_channels =
      ceil_div(sides.axes[1].kernel * sides.in_channels, kIntegerBlock) * kIntegerBlock;
  unfolded.windows.in_extent = {reach, sides.out_extent[1], 1};
  unfolded.windows.axes[0].pad_begin = unfolded.windows.axes[1].pad_begin = 0;
  unfolded.windows.axes[1].kernel = unfolded.windows.axes[1].stride = unfolded.windows.axes[1].dilation = 1;
  return unfolded;
}

Result<KernelPtr> build_conv(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const IntegerConv conv, describe_conv(node));
  const ConvSides& sides = conv.sides;
  const int64_t channels = sides.group_out(), blocks = ceil_div(sides.group_in(), kIntegerBlock);
  if (sides.out_pixels() * channels * sides.group_in() == 0) return unsupported("an empty convolution");
  if (sides.groups > 1 && (channels < 4 || sides.group_in() < 4))
    return unsupported("groups of ", sides.group_in(), " input and ", channels, " output channels");
  IntegerGemm gemm{.m = sides.out_pixels(), .n = channels, .k = sides.taps() * sides.group_in()};
  gemm.a_signed = node.dtype(0) == DType::I8;
  gemm.b_signed = node.dtype(1) == DType::I8;
  gemm.requantize = conv.requantize;
  gemm.batch = {1, sides.groups};
  gemm.c_batch = {0, channels};
  gemm.c_row = sides.out_channels;
  gemm.batch_channels = channels;
  RT_ASSIGN(gemm.zero_a, zero_point(node, conv.zero.a, 1));
  gemm.a_zero = in(conv.zero.a);
  if (conv.zero.b != 0) {
    RT_ASSIGN(gemm.zero_b, zero_point(node, conv.zero.b, sides.out_channels));
    gemm.b_zero = in(conv.zero.b);
  }
  auto program = std::make_unique<Program>("conv_integer");
  const bool two_axes = sides.in_extent[2] == 1 && sides.out_extent[2] == 1 && sides.axes[2].kernel == 1;
  const Ref* zero = gemm.zero_a == ZeroPoint::None ? nullptr : &gemm.a_zero;
  // Taps, and bytes per tap; the weight's columns have the same layout.
  int64_t taps = 1, each = gemm.k;
  Unfolded unfolded;
  if (sides.group_in() % kIntegerBlock == 0 && two_axes) {
    gemm.a = in(0);
    gemm.a_row = sides.in_channels / kIntegerBlock;
    gemm.a_batch = {0, blocks};
    if (!sides.pointwise()) gemm.windows = &sides;
  } else if (two_axes && unfolds_rows(sides)) {
    unfolded = unfold_rows(sides);
    taps = sides.axes[0].kernel;
    each = gemm.k / taps;
    RT_TRY(bindable(device, packed_rows_bytes(unfolded.rows)));
    gemm.a = packed_rows(*program, device, in(0), unfolded.rows, gemm.a_signed, zero);
    gemm.a_row = unfolded.windows.in_channels / kIntegerBlock;
    gemm.windows = &unfolded.windows;
  } else {
    RT_TRY(bindable(device, packed_rows_bytes(sides)));
    gemm.a = packed_rows(*program, device, in(0), sides, gemm.a_signed, zero);
    gemm.a_row = ceil_div(gemm.k, kIntegerBlock);
    gemm.a_batch = {0, gemm.m * gemm.a_row};
  }
  const ByteColumns columns{.matrices = sides.groups * taps,
                            .k = each,
                            .n = channels,
                            .matrix_stride = taps > 1 ? each : channels * gemm.k,
                            .k_stride = 1,
                            .n_stride = gemm.k,
                            .is_signed = gemm.b_signed};
  RT_TRY(bindable(device, columns.packed_bytes()));
  gemm.b = packed_columns(*program, device, in(1), columns, constant_of(node, 1));
  if (constant_of(node, 1) != nullptr) program->replaces(1);
  gemm.b_batch = {0, columns.blocks() * channels};
  add_integer_gemm(*program, device, gemm, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> build_depthwise(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const IntegerConv conv, describe_conv(node));
  const ConvSides& sides = conv.sides;
  RT_TRY(depthwise_supports(sides));
  if (sides.in_channels % kIntegerBlock != 0)
    return unsupported(sides.in_channels, " channels, not a multiple of ", kIntegerBlock);
  if (conv.zero.b != 0 && node.has(conv.zero.b)) return unsupported("a zero point of the weight");
  constexpr int64_t kMaxTaps = 256;  // 255 * 255 times so many are less than 2^24, below which f32 is exact
  if (sides.taps() > kMaxTaps) return unsupported(sides.taps(), " taps, more than ", kMaxTaps);
  const ByteColumns columns{.k = sides.in_channels,
                            .n = sides.taps(),
                            .k_stride = sides.taps(),
                            .n_stride = 1,
                            .is_signed = node.dtype(1) == DType::I8};
  auto program = std::make_unique<Program>("depthwise_integer");
  const Ref weight = packed_columns(*program, device, in(1), columns, constant_of(node, 1));
  if (constant_of(node, 1) != nullptr) program->replaces(1);
  const DepthwiseTile tile(sides, kIntegerBlock);
  const bool texel = through_texels(device, node.input(0).bytes());
  Step& step = program->dispatch_each(
      texel ? Shader::depthwise_integer_texel : Shader::depthwise_integer_buffer, tile.count, 64);
  const bool has_zero = node.has(conv.zero.a);
  conv.requantize.specialize(step);
  for (const int64_t constant : {tile.pixels, tile.taps, tile.stride})
    step.spec(static_cast<uint64_t>(constant));
  step.spec(flip_of(node, 0)).spec(128 - flip_of(node, 1)).spec(has_zero);
  tile.push(step, sides);
  conv.requantize.push(step);
  step.matrix(0, in(0), texel).matrix(1, weight, texel);
  conv.requantize.bind(step, out(0));
  if (has_zero) step.read(7, in(conv.zero.a));
  return finish(std::move(program));
}

Result<KernelPtr> build_any_conv(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const IntegerConv conv, describe_conv(node));
  const int64_t count = conv.sides.out_pixels() * conv.sides.out_channels;
  const auto [zero_x, zero_w] = conv.zero;
  const bool has_zero_w = zero_w != 0 && node.has(zero_w);
  auto program = std::make_unique<Program>("conv_integer");
  conv.requantize.clear(*program, out(0));
  Step& step = program->dispatch_each(Shader::conv_integer, count, device.plan().elementwise_lanes);
  conv.requantize.specialize(step);
  step.spec(flip_of(node, 0)).spec(flip_of(node, 1)).spec(node.has(zero_x));
  step.spec(!has_zero_w ? 0 : is_one_for_all(node, zero_w) ? 1 : 2);
  step.push(count);
  push_sides(step, conv.sides);
  conv.requantize.push(step);
  step.read(0, in(0)).read(1, in(1));
  conv.requantize.bind(step, out(0));
  if (node.has(zero_x)) step.read(7, in(zero_x));
  if (has_zero_w) step.read(8, in(zero_w));
  return finish(std::move(program));
}

constexpr DTypeSet kBytes{DType::U8, DType::I8};
constexpr KernelRow kRows[] = {
    built_row<build_matmul_integer>(OpKind::MatMulInteger, "matmul_integer.tiled", kBytes, 10),
    built_row<build_any_matmul>(OpKind::MatMulInteger, "matmul_integer.direct", kBytes, 0),
    built_row<build_conv>(OpKind::ConvInteger, "conv_integer.tiled", kBytes, 10),
    built_row<build_depthwise>(OpKind::ConvInteger, "conv_integer.depthwise", kBytes, 20),
    built_row<build_any_conv>(OpKind::ConvInteger, "conv_integer.direct", kBytes, 0),
    built_row<build_quantized_matmul>(OpKind::QuantizedMatMul, "quantized_matmul.tiled", kBytes, 10),
    built_row<build_conv>(OpKind::QuantizedConv, "quantized_conv.tiled", kBytes, 10),
    built_row<build_depthwise>(OpKind::QuantizedConv, "quantized_conv.depthwise", kBytes, 20),
    built_row<build_any_conv>(OpKind::QuantizedConv, "quantized_conv.direct", kBytes, 0),
};

}  // namespace

std::span<const KernelRow> rows_integer_matmul() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
