// DeformConv: a convolution over samples at fractional positions. Channels-last inside.
#include <algorithm>
#include <array>
#include <numeric>

#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/window.h"

namespace librt::onnx {
namespace {

/// Of the spatial axes, which may be known only at run time; taps are counted over all of them.
struct Deformed {
  Window window;
  std::vector<int64_t> image, result;  ///< below 0: not known
  int64_t groups, offset_groups, channels, outputs, taps;
  ValueId offsets = kNoValue;  ///< input 2, whose extents are those of the result
  ValueId images = kNoValue;   ///< i64 [1]: samples times offset groups
  ValueId points = kNoValue;   ///< i64 [1]: of the result
  size_t axes() const { return image.size(); }
  bool is_open(size_t axis) const { return image[axis] < 0 || result[axis] < 0; }
};

ValueId number(NodeContext& c, int64_t value) {
  return c.emit.ints({&value, 1});
}

// Positions of the window along an axis, which the offsets must have.
Status check_result(NodeContext& c, Deformed& d, size_t i) {
  const int axis = static_cast<int>(i) + 2;
  const int64_t reach = d.window.dilations[i] * (d.window.kernel[i] - 1) + 1;
  const int64_t pads = d.window.pads[i] + d.window.pads[i + d.axes()], stride = d.window.strides[i];
  if (d.is_open(i)) {
    // 0 where the image is too small for the window.
    const ValueId room =
        c.emit.add(dims_product(c.emit, c.input(0), axis, axis + 1), number(c, pads - reach + stride));
    const ValueId count =
        c.emit.div(c.emit.emit(op::MaximumAttributes{}, {room, number(c, 0)}), number(c, stride));
    d.offsets = demand_extent(c.emit, d.offsets, axis, count);
    return {};
  }
  const int64_t total = d.image[i] + pads;
  if (total < reach || (total - reach) / stride + 1 != d.result[i])
    return invalid_model("the offsets' extent ", d.result[i], " along axis ", axis,
                         " does not follow from the window");
  return {};
}

Result<Deformed> deformed_of(NodeContext& c) {
  Deformed d;
  if (c.rank(1) != c.rank() || c.rank(2) != c.rank())
    return invalid_model("expected an input, a weight and offsets of one rank");
  std::vector<int64_t> kernel;
  for (int axis = 2; axis < c.rank(); ++axis) {
    kernel.push_back(c.extent(1, axis));
    d.image.push_back(c.extent(0, axis));
    d.result.push_back(c.extent(2, axis));
  }
  RT_ASSIGN(d.window, window_of(c, kernel, true));
  if (d.window.spatial > 3) return cannot(d.window.spatial, " spatial axes; at most 3 are supported");
  d.groups = c.integer("group", 1);
  d.offset_groups = c.integer("offset_group", 1);
  d.channels = c.extent(0, 1);
  d.outputs = c.extent(1, 0);
  const auto is_empty = [](const std::vector<int64_t>& list) {
    return std::find(list.begin(), list.end(), 0) != list.end();
  };
  if (d.channels < 1 || d.outputs < 1)
    return cannot("the numbers of channels must be known and not 0; fix them with --dim");
  if (is_empty(d.image) || is_empty(d.result)) return cannot("images without elements are not supported");
  d.taps = std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>());
  const int64_t offsets = c.extent(2, 1), axes = static_cast<int64_t>(d.axes());
  if (d.groups < 1 || d.offset_groups < 1 || d.channels % d.groups != 0 || d.outputs % d.groups != 0 ||
      d.channels % d.offset_groups != 0 || c.extent(1, 1) != d.channels / d.groups ||
      offsets != d.offset_groups * d.taps * axes)
    return invalid_model("the channels of input, weight and offsets do not fit group ", d.groups,
                         " and offset_group ", d.offset_groups);
  d.offsets = c.input(2);
  for (size_t i = 0; i < d.axes(); ++i) RT_TRY(check_result(c, d, i));
  d.images = c.emit.mul(dims_product(c.emit, c.input(0), 0, 1), number(c, d.offset_groups));
  d.points = dims_product(c.emit, d.offsets, 2, c.rank());
  return d;
}

// The coordinate of pixel `at` of n, whose edges are -1 and 1.
double coordinate(int64_t at, int64_t n) {
  return (2 * static_cast<double>(at) + 1) / static_cast<double>(n) - 1;
}

// Where the taps along an axis are at the positions along it without offsets, [kernel,positions].
ValueId axis_coordinates(NodeContext& c, const Deformed& d, size_t axis, DType dtype) {
  const int64_t kernel = d.window.kernel[axis], stride = d.window.strides[axis];
  const int64_t image = d.image[axis], result = d.result[axis];
  std::vector<double> first;  // of each tap
  for (int64_t tap = 0; tap < kernel; ++tap)
    first.push_back(static_cast<double>(tap * d.window.dilations[axis] - d.window.pads[axis]));
  if (!d.is_open(axis)) {
    std::vector<double> all;
    for (int64_t tap = 0; tap < kernel; ++tap)
      for (int64_t point = 0; point < result; ++point)
        all.push_back(
            coordinate(tap * d.window.dilations[axis] - d.window.pads[axis] + point * stride, image));
    return float_values(c.emit, {kernel, result}, all, dtype);
  }
  Emitter& e = c.emit;
  const int at = static_cast<int>(axis) + 2;
  const auto scalar = [&](double value) { return e.scalar(value, dtype); };
  const ValueId count = reshape_to(e, dims_product(e, d.offsets, at, at + 1), {});
  const ValueId steps =
      e.emit(op::RangeAttributes{}, {e.scalar(0, DType::I64), count, e.scalar(1, DType::I64)});
  const ValueId row =
      reshape_to(e, e.mul(e.cast(steps, dtype), scalar(static_cast<double>(stride))), {1, -1});
  const ValueId pixel = e.add(row, float_values(c.emit, {kernel, 1}, first, dtype));
  const ValueId n = e.cast(dims_product(e, c.input(0), at, at + 1), dtype);
  return e.sub(e.div(e.add(e.add(pixel, pixel), scalar(1)), n), scalar(1));
}

// The same for all axes, the last axis first, [taps,points,axes]; and how far an offset of one pixel is,
// [axes].
std::pair<ValueId, ValueId> grid_base(NodeContext& c, const Deformed& d, DType dtype) {
  const size_t k = d.axes();
  std::vector<ValueId> columns, steps;
  std::vector<ValueId> extents{c.emit.ints(d.window.kernel)};
  for (size_t axis = 0; axis < k; ++axis) {
    const int at = static_cast<int>(axis) + 2;
    extents.push_back(dims_product(c.emit, d.offsets, at, at + 1));
  }
  const ValueId all = concat_values(c.emit, extents);
  for (size_t axis = k; axis-- > 0;) {
    std::vector<int64_t> along(2 * k, 1);
    along[axis] = d.window.kernel[axis];
    along[axis + k] = -1;
    const ValueId column = c.emit.reshape(axis_coordinates(c, d, axis, dtype), c.emit.ints(along));
    columns.push_back(
        reshape_to(c.emit, c.emit.emit(op::ExpandAttributes{}, {column, all}), {d.taps, -1, 1}));
    const int at = static_cast<int>(axis) + 2;
    const double step = 2 / static_cast<double>(d.image[axis]);
    steps.push_back(d.image[axis] >= 0
                        ? float_values(c.emit, {1}, {&step, 1}, dtype)
                        : c.emit.div(c.emit.scalar(2, dtype),
                                     c.emit.cast(dims_product(c.emit, c.input(0), at, at + 1), dtype)));
  }
  return {concat(c.emit, columns, 2), concat_values(c.emit, std::move(steps))};
}

// Coordinates for GridSample, [images, taps, points, axes], the last axis first.
ValueId deformed_grid(NodeContext& c, const Deformed& d) {
  const auto k = static_cast<int64_t>(d.axes());
  const DType dtype = c.dtype(), computed = dtype == DType::F64 ? DType::F64 : DType::F32;
  ValueId offsets = c.emit.reshape(
      d.offsets, concat_values(c.emit, {d.images, c.emit.ints(std::array{d.taps, k}), d.points}));
  offsets = c.emit.transpose(offsets, {0, 1, 3, 2});
  std::vector<int64_t> reversed(static_cast<size_t>(k));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  op::GatherAttributes flip;
  flip.axis = 3;
  offsets = c.emit.emit(flip, {offsets, c.emit.ints(reversed)});
  auto [base, step] = grid_base(c, d, computed);
  if (dtype != computed) {
    base = c.emit.cast(base, dtype);
    step = c.emit.cast(step, dtype);
  }
  return c.emit.add(c.emit.mul(offsets, step), base);
}

// The samples of the taps at every point, [N,taps,points,C].
ValueId deformed_samples(NodeContext& c, const Deformed& d) {
  const int64_t each = d.channels / d.offset_groups;
  const size_t k = d.axes();
  std::vector<ValueId> grouped{d.images, number(c, each)};
  for (int axis = 2; axis < c.rank(); ++axis)
    grouped.push_back(dims_product(c.emit, c.input(0), axis, axis + 1));
  const ValueId x =
      to_channels_last(c.emit, c.emit.reshape(c.input(0), concat_values(c.emit, std::move(grouped))));
  // As many axes as the image has.
  std::vector<ValueId> over{d.images};
  if (k == 1) {
    over.push_back(c.emit.mul(d.points, number(c, d.taps)));
  } else {
    over.push_back(number(c, d.taps));
    over.push_back(d.points);
  }
  if (k > 2) over.push_back(number(c, 1));
  over.push_back(number(c, static_cast<int64_t>(k)));
  const ValueId grid = c.emit.reshape(deformed_grid(c, d), concat_values(c.emit, std::move(over)));
  const ValueId read = c.emit.emit(op::GridSampleAttributes{}, {x, grid});
  const int64_t groups[] = {d.offset_groups, d.taps}, last[] = {each}, one[] = {1};
  const ValueId batch = dims_product(c.emit, c.input(0), 0, 1);
  const auto by_group = [&](ValueId value, std::span<const int64_t> tail) {
    return c.emit.reshape(value,
                          concat_values(c.emit, {batch, c.emit.ints(groups), d.points, c.emit.ints(tail)}));
  };
  ValueId samples = by_group(read, last);
  if (c.has(4)) samples = c.emit.mul(samples, by_group(c.input(4), one));
  samples = c.emit.transpose(samples, {0, 2, 3, 1, 4});
  return c.emit.reshape(samples,
                        concat_values(c.emit, {batch, number(c, d.taps), d.points, number(c, d.channels)}));
}

// A convolution over the samples of the taps.
Status deform_conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 5));
  RT_ASSIGN(const Deformed d, deformed_of(c));
  const int64_t in_group = d.channels / d.groups;
  ValueId weight = reshape_to(c.emit, c.input(1), {d.outputs, in_group, d.taps});
  weight = reshape_to(c.emit, c.emit.transpose(weight, {0, 2, 1}), {d.outputs, d.taps, 1, in_group});
  op::ConvAttributes attributes;
  attributes.groups = d.groups;
  std::vector<ValueId> operands{deformed_samples(c, d), weight};
  if (c.has(3)) {
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->has_bias = true;
    operands.push_back(c.input(3));
  }
  const ValueId sums = c.emit.emit_many(make_op(std::move(attributes)), operands, 1)[0];
  std::vector<Extent> extents{Extent::dim(c.emit, c.input(0), 0), Extent::of(d.outputs)};
  for (int axis = 2; axis < c.rank(); ++axis) extents.push_back(Extent::dim(c.emit, d.offsets, axis));
  return c.result(reshape_to(c.emit, to_channels_first(c.emit, sums), extents));
}

constexpr ImportRow kDeformRows[] = {
    {"", "DeformConv", 19, kNewestOpset, deform_conv},
};

}  // namespace

std::span<const ImportRow> rows_deform_conv() {
  return kDeformRows;
}

}  // namespace librt::onnx
