// Image sampling at fractional positions: GridSample, AffineGrid, RoiAlign, MaxUnpool.
// Channels-last inside.
#include <algorithm>
#include <functional>
#include <numeric>

#include "runtime/core/element.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"
#include "tools/onnx/window.h"

namespace librt::onnx {
namespace {

int64_t matmul_of(std::span<const int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

Result<op::ResizeMode> sampling_mode(NodeContext& c) {
  const bool old = c.opset < 20;
  const std::string mode = c.string("mode", old ? "bilinear" : "linear");
  if (mode == "nearest") return op::ResizeMode::Nearest;
  if (mode == (old ? "bilinear" : "linear")) return op::ResizeMode::Linear;
  if (mode == (old ? "bicubic" : "cubic")) return op::ResizeMode::Cubic;
  return invalid_model("mode: expected nearest, ", old ? "bilinear or bicubic" : "linear or cubic",
                       ", found ", mode);
}

Result<op::GridSamplePadding> sampling_padding(NodeContext& c) {
  const std::string mode = c.string("padding_mode", "zeros");
  if (mode == "zeros") return op::GridSamplePadding::Zeros;
  if (mode == "border") return op::GridSamplePadding::Border;
  if (mode == "reflection") return op::GridSamplePadding::Reflection;
  return invalid_model("padding_mode: expected zeros, border or reflection, found ", mode);
}

Status grid_sample(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  op::GridSampleAttributes attributes;
  RT_ASSIGN(attributes.mode, sampling_mode(c));
  RT_ASSIGN(attributes.padding, sampling_padding(c));
  attributes.align_corners = c.integer("align_corners", 0) != 0;
  const DType dtype = c.dtype();
  ValueId x = to_channels_last(c.emit, c.input(0));
  if (!is_float(dtype)) x = c.emit.cast(x, DType::F64);
  ValueId y = c.emit.emit(attributes, {x, c.input(1)});
  if (!is_float(dtype)) y = c.emit.cast(y, dtype);
  return c.result(to_channels_first(c.emit, y));
}

/// The coordinate of point i of n in [-1, 1]: of pixel centers, or with the first and last at the ends.
double grid_coordinate(int64_t i, int64_t n, bool align_corners) {
  const auto at = static_cast<double>(i), count = static_cast<double>(n);
  if (align_corners) return n > 1 ? 2 * at / (count - 1) - 1 : 0;
  return (2 * at + 1) / count - 1;
}

/// The homogeneous coordinates of every output point, [1,points,k+1], for static extents.
Result<ValueId> known_points(NodeContext& c, std::span<const int64_t> spatial, bool align_corners) {
  if (std::any_of(spatial.begin(), spatial.end(), [](int64_t n) { return n < 1 || n > 1 << 24; }) ||
      matmul_of(spatial) > 1 << 28)
    return cannot("a grid of this size is not supported");
  const int64_t points = matmul_of(spatial);
  std::vector<double> base;
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point;
    for (size_t d = spatial.size(); d-- > 0; rest /= spatial[d])
      base.push_back(grid_coordinate(rest % spatial[d], spatial[d], align_corners));
    base.push_back(1);
  }
  return float_values(c.emit, {1, points, static_cast<int64_t>(spatial.size()) + 1}, base, c.dtype());
}

/// The same for dynamic extents, an i64 vector.
ValueId open_points(NodeContext& c, ValueId spatial, int axes, bool align_corners) {
  Emitter& e = c.emit;
  const DType dtype = c.dtype() == DType::F64 ? DType::F64 : DType::F32;
  const auto scalar = [&](double number) { return e.scalar(number, dtype); };
  std::vector<ValueId> columns;
  for (int d = axes; d-- > 0;) {
    const ValueId count = reshape_to(e, slice(e, spatial, 0, d, d + 1), {});
    const ValueId n = e.cast(count, dtype);
    const ValueId at = e.cast(
        e.emit(op::RangeAttributes{}, {e.scalar(0, DType::I64), count, e.scalar(1, DType::I64)}), dtype);
    const ValueId twice = e.add(at, at);
    ValueId coordinate = kNoValue;
    if (align_corners) {  // 0 where there is one point
      const ValueId last = e.sub(n, scalar(1));
      const ValueId along = e.div(twice, e.emit(op::MaximumAttributes{}, {last, scalar(1)}));
      coordinate = e.sub(along, e.emit(op::MinimumAttributes{}, {last, scalar(1)}));
    } else {
      coordinate = e.sub(e.div(e.add(twice, scalar(1)), n), scalar(1));
    }
    std::vector<int64_t> along(static_cast<size_t>(axes), 1);
    along[static_cast<size_t>(d)] = -1;
    const ValueId all = e.emit(op::ExpandAttributes{}, {e.reshape(coordinate, e.ints(along)), spatial});
    columns.push_back(reshape_to(e, all, {1, -1, 1}));
  }
  op::ConstantOfShapeAttributes ones;
  ones.dtype = static_cast<uint8_t>(dtype);
  ones.value = 1;
  columns.push_back(e.emit(ones, {e.shape_of(columns[0])}));
  const ValueId points = concat(e, columns, 2);
  return dtype == c.dtype() ? points : e.cast(points, c.dtype());
}

// theta [N,k,k+1] times the homogeneous coordinates of every output point.
Status affine_grid(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  const bool align_corners = c.integer("align_corners", 0) != 0;
  const ValueId size = as_vector(c.emit, c.input(1));
  if (size == kNoValue) return {};
  const int64_t entries = c.value(size).dims[0].extent;
  const int64_t k = entries - 2;
  if (k < 2 || k > 3 || c.rank() != 3 || c.extent(0, 1) != k || c.extent(0, 2) != k + 1)
    return invalid_model("expected a size [N,C,H,W] or [N,C,D,H,W] and theta [N,k,k+1], found size of ",
                         entries, " entries");
  const ValueId spatial = slice(c.emit, size, 0, 2, entries);
  if (spatial == kNoValue) return {};
  ValueId points = kNoValue;
  std::vector<ValueId> extents{dims_product(c.emit, c.input(0), 0, 1), spatial, c.emit.ints({&k, 1})};
  if (const auto known = c.emit.known_value(spatial)) {
    std::vector<int64_t> given;
    for (int64_t i = 0; i < k; ++i) given.push_back(load_integer(known->data, DType::I64, i));
    RT_ASSIGN(points, known_points(c, given, align_corners));
    extents[1] = c.emit.ints(given);
  } else {
    points = open_points(c, spatial, static_cast<int>(k), align_corners);
  }
  op::MatMulAttributes matmul;
  matmul.transpose_b = true;
  const ValueId grid = c.emit.emit(matmul, {points, c.input(0)});
  return c.result(c.emit.reshape(grid, concat_values(c.emit, std::move(extents))));
}

Status roi_align(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  op::RoiAlignAttributes attributes;
  attributes.height = c.integer("output_height", 1);
  attributes.width = c.integer("output_width", 1);
  attributes.sampling_ratio = c.integer("sampling_ratio", 0);
  attributes.spatial_scale = c.real("spatial_scale", 1);
  const std::string mode = c.string("mode", "avg");
  if (mode != "avg" && mode != "max") return invalid_model("mode: expected avg or max, found ", mode);
  attributes.maximum = mode == "max";
  attributes.half_pixel = false;
  if (c.opset >= 16) {
    const std::string coordinates = c.string("coordinate_transformation_mode", "half_pixel");
    if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
      return invalid_model("coordinate_transformation_mode: expected half_pixel or output_half_pixel, found ",
                           coordinates);
    attributes.half_pixel = coordinates == "half_pixel";
  }
  const ValueId x = to_channels_last(c.emit, c.input(0));
  return c.result(to_channels_first(c.emit, c.emit.emit(attributes, {x, c.input(1), c.input(2)})));
}

// Writes x to its positions in the flattened images that the window's attributes describe; a different
// output_shape only adds zeros after them.
Status max_unpool(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  RT_ASSIGN(const Window window, window_of(c, {}, false));
  std::vector<Extent> extents{Extent::dim(c.emit, c.input(0), 0), Extent::dim(c.emit, c.input(0), 1)};
  int64_t image = 1;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t extent = c.extent(0, static_cast<int>(d) + 2);
    if (extent < 0) return cannot("the extents of the image are not known; fix them with --dim");
    const int64_t whole = (extent - 1) * window.strides[d] + window.kernel[d] - window.pads[d] -
                          window.pads[d + window.kernel.size()];
    if (whole < 1) return invalid_model("the pads leave nothing of axis ", d + 2);
    extents.push_back(Extent::of(whole));
    image *= whole;
  }
  const ValueId count = c.emit.mul(dims_product(c.emit, c.input(0), 0, 2), c.emit.ints({&image, 1}));
  const ValueId zeros = c.emit.emit(op::ExpandAttributes{}, {c.emit.scalar_like(0, c.input(0)), count});
  const ValueId flat =
      c.emit.emit(op::ScatterElementsAttributes{},
                  {zeros, reshape_to(c.emit, c.input(1), {-1}), reshape_to(c.emit, c.input(0), {-1})});
  const ValueId y = reshape_to(c.emit, flat, extents);
  if (!c.has(2)) return c.result(y);
  const ValueId wanted = as_vector(c.emit, c.input(2));
  const std::vector<int64_t> front(extents.size(), 0);
  const ValueId pads =
      concat_values(c.emit, {c.emit.ints(front), c.emit.sub(wanted, shape_vector(c.emit, extents))});
  return c.result(c.emit.emit(op::PadAttributes{}, {y, pads}));
}

constexpr ImportRow kSampleRows[] = {
    {"", "GridSample", 16, kNewestOpset, grid_sample},
    {"com.microsoft", "GridSample", 1, kNewestOpset, grid_sample},
    {"", "AffineGrid", 20, kNewestOpset, affine_grid},
    {"", "RoiAlign", 10, kNewestOpset, roi_align},
    {"", "MaxUnpool", 9, kNewestOpset, max_unpool},
};

}  // namespace

std::span<const ImportRow> rows_sample() {
  return kSampleRows;
}

}  // namespace librt::onnx
