// Resize, Upsample, DepthToSpace and SpaceToDepth: channels-last inside.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/core/element.h"
#include "tools/compiler/shape/ratio.h"
#include "tools/onnx/node.h"
#include "tools/onnx/opened_batch.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

Result<op::ResizeMode> mode_of(NodeContext& c) {
  const std::string mode = c.string("mode", "nearest");
  if (mode == "nearest") return op::ResizeMode::Nearest;
  if (mode == "linear" || mode == "bilinear") return op::ResizeMode::Linear;
  if (mode == "cubic") return op::ResizeMode::Cubic;
  return invalid_model("mode: expected nearest, linear or cubic, found ", mode);
}

Result<op::ResizeCoordinates> coordinates_of(NodeContext& c) {
  const std::string name = c.string("coordinate_transformation_mode", "half_pixel");
  if (name == "half_pixel") return op::ResizeCoordinates::HalfPixel;
  if (name == "pytorch_half_pixel") return op::ResizeCoordinates::PytorchHalfPixel;
  if (name == "align_corners") return op::ResizeCoordinates::AlignCorners;
  if (name == "asymmetric") return op::ResizeCoordinates::Asymmetric;
  if (name == "half_pixel_symmetric") return op::ResizeCoordinates::HalfPixelSymmetric;
  if (name == "tf_half_pixel_for_nn") return op::ResizeCoordinates::TfHalfPixelForNn;
  if (name == "tf_crop_and_resize") return op::ResizeCoordinates::TfCropAndResize;
  return invalid_model("coordinate_transformation_mode: found ", name);
}

Result<op::ResizeNearest> rounding_of(NodeContext& c) {
  const std::string name = c.string("nearest_mode", "round_prefer_floor");
  if (name == "round_prefer_floor") return op::ResizeNearest::RoundPreferFloor;
  if (name == "round_prefer_ceil") return op::ResizeNearest::RoundPreferCeil;
  if (name == "floor") return op::ResizeNearest::Floor;
  if (name == "ceil") return op::ResizeNearest::Ceil;
  return invalid_model("nearest_mode: found ", name);
}

// The target: sizes, scales or both for every axis of the input, as values that may depend on dynamic
// extents.
struct Target {
  ValueId sizes = kNoValue;   // i64 [rank]
  ValueId scales = kNoValue;  // f32 [rank]
  ValueId roi =
      kNoValue;  // f32 [2 * rank] for tf_crop_and_resize: a start for each axis, then an end for each
};

// Whether entry `axis` leaves the axis as it is, whatever the extents.
bool keeps(const NodeContext& c, const Target& target, int axis) {
  const auto at = static_cast<size_t>(axis);
  if (target.roi != kNoValue) {
    const auto roi = c.emit.known_value(target.roi);
    const auto entry = [&](int i) { return load_element(roi->data, roi->info.dtype, i); };
    if (!roi || entry(axis) != 0 || entry(axis + c.rank()) != 1) return false;
  }
  if (target.sizes != kNoValue) {
    const compiler::Known& sizes = c.emit.known(target.sizes);
    return sizes.has_elements && sizes.elements[at] == c.emit.known(c.inputs[0]).dims[at];
  }
  const auto scales = c.emit.known_value(target.scales);
  return scales && load_element(scales->data, scales->info.dtype, axis) == 1;
}

// The extents that known scales give. Those that a run knows are computed with the fractions that the scales
// stand for: with scales alone, a run multiplies in f32, which no expression of extents describes. None where
// the two differ, or, unless `always`, where all extents are known now.
ValueId sizes_of(NodeContext& c, ValueId scales, bool always) {
  const auto known = c.emit.known_value(scales);
  if (!known || known->info.dtype != DType::F32 || known->info.elements() != c.rank()) return kNoValue;
  std::vector<ValueId> sizes;
  for (int axis = 0; axis < c.rank(); ++axis) {
    const auto scale = static_cast<float>(load_element(known->data, known->info.dtype, axis));
    const int64_t extent = c.extent(0, axis);
    const float product = static_cast<float>(extent) * scale;
    if (scale == 1) {
      sizes.push_back(dims_product(c.emit, c.input(0), axis, axis + 1));
    } else if (extent >= 0) {
      if (!(scale > 0 && product < 0x1p31f)) return kNoValue;  // an error of the operator
      sizes.push_back(c.emit.ints(std::array{static_cast<int64_t>(product)}));
    } else {
      const compiler::Ratio ratio = compiler::ratio_of_extents(scale);
      if (ratio.denominator == 0) return kNoValue;
      always = true;
      const ValueId all = dims_product(c.emit, c.input(0), axis, axis + 1);
      sizes.push_back(c.emit.div(c.emit.mul(all, c.emit.ints({&ratio.numerator, 1})),
                                 c.emit.ints({&ratio.denominator, 1})));
    }
  }
  return always ? concat_values(c.emit, std::move(sizes)) : kNoValue;
}

// Entries [first, last) of each part of an f32 vector, a part having one for each axis: a constant if they
// are known, as the gradient needs them.
ValueId entries(NodeContext& c, ValueId vector, int parts, int first, int last) {
  const auto known = c.emit.known_value(vector);
  std::vector<ValueId> slices;
  std::vector<float> numbers;
  for (int part = 0; part < parts; ++part) {
    const int offset = part * c.rank();
    if (!known) slices.push_back(slice(c.emit, vector, 0, offset + first, offset + last));
    for (int axis = first; known && axis < last; ++axis)
      numbers.push_back(static_cast<float>(load_element(known->data, known->info.dtype, offset + axis)));
  }
  if (!known) return concat_values(c.emit, std::move(slices));
  return c.emit.constant({.dtype = DType::F32, .shape = {static_cast<int64_t>(numbers.size())}},
                         Blob::copy_of(numbers.data(), numbers.size() * sizeof(float)));
}

ValueId emit_resize(NodeContext& c, const op::ResizeAttributes& attributes, ValueId x, const Target& target,
                    int first, int last) {
  std::vector<ValueId> operands{x, kNoValue, kNoValue};
  if (target.sizes != kNoValue) operands[1] = slice(c.emit, target.sizes, 0, first, last);
  if (target.scales != kNoValue) operands[2] = entries(c, target.scales, 1, first, last);
  if (target.roi != kNoValue) operands.push_back(entries(c, target.roi, 2, first, last));
  const DType dtype = c.value(x).dtype;
  if (is_float(dtype)) return c.emit.emit_many(make_op(attributes), operands, 1)[0];
  // Integers by floats that hold them, cut off towards zero, as ONNX's reference and ONNX Runtime do. A cubic
  // filter leaves their range.
  const bool is_byte = size_of(dtype) == 1;
  operands[0] = c.emit.cast(x, is_byte ? DType::F32 : DType::F64);
  ValueId y = c.emit.emit_many(make_op(attributes), operands, 1)[0];
  if (is_byte && attributes.mode == op::ResizeMode::Cubic) {
    op::ClipAttributes range;
    range.minimum = dtype == DType::I8 ? -128 : 0;
    range.maximum = dtype == DType::I8 ? 127 : 255;
    y = c.emit.emit(range, {y});
  }
  return c.emit.cast(y, dtype);
}

Status resize_to(NodeContext& c, const op::ResizeAttributes& attributes, Target target) {
  const int rank = c.rank();
  if (target.sizes == kNoValue && target.scales == kNoValue) return {};  // after a failure
  const ValueId operand = target.sizes != kNoValue ? target.sizes : target.scales;
  if (c.value(operand).rank() != 1 || c.value(operand).dims[0].extent != rank)
    return invalid_model("expected ", rank, " sizes or scales");
  if (target.sizes == kNoValue) target.sizes = sizes_of(c, target.scales, false);
  if (rank >= 3 && keeps(c, target, 0) && keeps(c, target, 1)) {
    const ValueId x = to_channels_last(c.emit, c.input(0));
    return c.result(to_channels_first(c.emit, emit_resize(c, attributes, x, target, 2, rank)));
  }
  // Every axis is spatial, in a single image with one channel, except a first or last axis that stays.
  const bool batch = rank >= 3 && keeps(c, target, 0);
  const bool channels = rank >= 3 && keeps(c, target, rank - 1);
  if (rank + !batch + !channels > kMaxRank)
    return cannot("resizing ", rank, " axes at once is not supported; resize the spatial axes only");
  std::vector<int> added;
  if (!batch) added.push_back(0);
  if (!channels) added.push_back(rank + !batch);
  const ValueId x = added.empty() ? c.input(0) : unsqueeze(c.emit, c.input(0), added);
  const ValueId y = emit_resize(c, attributes, x, target, batch ? 1 : 0, channels ? rank - 1 : rank);
  return c.result(added.empty() ? y : squeeze(c.emit, y, added));
}

Status upsample(NodeContext& c) {
  op::ResizeAttributes attributes;
  RT_ASSIGN(attributes.mode, mode_of(c));
  attributes.coordinates = op::ResizeCoordinates::Asymmetric;
  attributes.nearest = op::ResizeNearest::Floor;
  Target target;
  if (c.opset >= 9) {
    RT_TRY(c.expect_inputs(2, 2));
    target.scales = c.input(1);
  } else {
    RT_TRY(c.expect_inputs(1, 1));
    std::vector<float> scales = c.reals("scales");
    if (c.opset < 7) scales = {1, 1, c.real("height_scale", 1), c.real("width_scale", 1)};
    target.scales = c.emit.constant({.dtype = DType::F32, .shape = {static_cast<int64_t>(scales.size())}},
                                    Blob::copy_of(scales.data(), scales.size() * sizeof(float)));
  }
  return resize_to(c, attributes, std::move(target));
}

// Opset 10: like Upsample, and also down, where nearest rounds up.
Status resize_10(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  op::ResizeAttributes attributes;
  RT_ASSIGN(attributes.mode, mode_of(c));
  RT_ASSIGN(const std::vector<double> scales, c.known_reals(1, "scales"));
  const bool down = std::any_of(scales.begin(), scales.end(), [](double scale) { return scale < 1; });
  const bool up = std::any_of(scales.begin(), scales.end(), [](double scale) { return scale > 1; });
  if (down && up && attributes.mode == op::ResizeMode::Nearest)
    return cannot("nearest resizing up along one axis and down along another; export with opset 11 or later");
  attributes.coordinates = op::ResizeCoordinates::Asymmetric;
  attributes.nearest = down ? op::ResizeNearest::Ceil : op::ResizeNearest::Floor;
  return resize_to(c, attributes, {.sizes = kNoValue, .scales = c.input(1)});
}

ValueId real(NodeContext& c, float number) {
  return c.emit.constant({.dtype = DType::F32, .shape = {1}}, Blob::copy_of(&number, sizeof number));
}

// Entries for all axes: entries[first + i] for axes[i], otherwise(axis) for the others.
template <class F>
ValueId scatter(NodeContext& c, ValueId entries, int64_t first, std::span<const int> axes, F&& otherwise) {
  std::vector<ValueId> all;
  for (int axis = 0; axis < c.rank(); ++axis) {
    const auto found = std::find(axes.begin(), axes.end(), axis);
    const int64_t at = first + (found - axes.begin());
    all.push_back(found != axes.end() ? slice(c.emit, entries, 0, at, at + 1) : otherwise(axis));
  }
  return concat_values(c.emit, std::move(all));
}

// keep_aspect_ratio_policy: one scale for all axes, the smallest or largest that a requested size needs.
Result<ValueId> with_aspect_ratio(NodeContext& c, std::span<const int> axes, bool not_larger) {
  RT_ASSIGN(std::vector<int64_t> sizes, c.known_integers(3, "sizes"));
  if (sizes.size() != axes.size())
    return invalid_model("expected ", axes.size(), " sizes, found ", sizes.size());
  double scale = not_larger ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = c.extent(0, axes[i]);
    if (extent <= 0) return cannot("keep_aspect_ratio_policy needs to know the extents; fix them with --dim");
    const double wanted = static_cast<double>(sizes[i]) / static_cast<double>(extent);
    scale = not_larger ? std::min(scale, wanted) : std::max(scale, wanted);
  }
  for (size_t i = 0; i < axes.size(); ++i)
    sizes[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(c.extent(0, axes[i])) + 0.5));
  return c.emit.ints(sizes);
}

// roi for all axes: those that are not in `axes` are taken whole.
Result<ValueId> roi_of(NodeContext& c, std::span<const int> axes) {
  if (!c.has(1)) return invalid_model("tf_crop_and_resize without roi");
  const auto count = static_cast<int64_t>(axes.size());
  if (c.rank(1) != 1) return invalid_model("roi: expected a vector, found rank ", c.rank(1));
  if (const int64_t found = c.extent(1, 0); found >= 0 && found != 2 * count)
    return invalid_model("roi: expected ", 2 * count, " numbers, found ", found);
  const ValueId roi = c.emit.cast(c.input(1), DType::F32);
  if (count == c.rank()) return roi;
  return concat_values(c.emit, {scatter(c, roi, 0, axes, [&](int) { return real(c, 0); }),
                                scatter(c, roi, count, axes, [&](int) { return real(c, 1); })});
}

Status resize_11(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 4));
  op::ResizeAttributes attributes;
  RT_ASSIGN(attributes.mode, mode_of(c));
  RT_ASSIGN(attributes.coordinates, coordinates_of(c));
  RT_ASSIGN(attributes.nearest, rounding_of(c));
  attributes.cubic_a = c.real("cubic_coeff_a", -0.75f);
  attributes.exclude_outside = c.integer("exclude_outside", 0) != 0;
  attributes.extrapolation = c.real("extrapolation_value", 0);
  attributes.antialias = c.integer("antialias", 0) != 0 && c.opset >= 18;
  std::vector<int> axes;
  if (const auto given = c.optional_integers("axes"); given && c.opset >= 18) {
    for (int64_t axis : *given) {
      RT_ASSIGN(const int normal, c.axis(axis, c.rank()));
      axes.push_back(normal);
    }
  }
  const bool some = !axes.empty();
  if (!some)
    for (int axis = 0; axis < c.rank(); ++axis) axes.push_back(axis);
  Target target;
  if (attributes.coordinates == op::ResizeCoordinates::TfCropAndResize) {
    RT_ASSIGN(target.roi, roi_of(c, axes));
  }
  const std::string policy = c.string("keep_aspect_ratio_policy", "stretch");
  // Opset 11 passes empty scales if sizes are used.
  const bool has_scales = c.has(2) && !(c.rank(2) == 1 && c.extent(2, 0) == 0);
  if (has_scales) {
    target.scales = some ? scatter(c, c.input(2), 0, axes, [&](int) { return real(c, 1); }) : c.input(2);
    // The last output position falls on the last input position; ONNX's definition has that of the extent
    // times the scale, which need not be whole. PyTorch and ONNX Runtime compute with whole extents.
    if (attributes.coordinates == op::ResizeCoordinates::AlignCorners && c.is_from_pytorch())
      if (target.sizes = sizes_of(c, target.scales, true); target.sizes != kNoValue) target.scales = kNoValue;
  } else if (c.has(3)) {
    ValueId sizes = as_vector(c.emit, c.input(3));
    if (policy == "not_larger" || policy == "not_smaller") {
      RT_ASSIGN(sizes, with_aspect_ratio(c, axes, policy == "not_larger"));
    } else if (policy != "stretch") {
      return invalid_model("keep_aspect_ratio_policy: found ", policy);
    }
    const auto extent = [&](int axis) { return dims_product(c.emit, c.input(0), axis, axis + 1); };
    target.sizes = some ? scatter(c, sizes, 0, axes, extent) : sizes;
    const auto known = leads_with_batch(c, c.input(0)) ? c.emit.known_value(target.sizes) : std::nullopt;
    if (known && load_integer(known->data, DType::I64, 0) == 1)
      target.sizes = concat_values(c.emit, {extent(0), slice(c.emit, target.sizes, 0, 1, c.rank())});
  } else {
    return invalid_model("neither scales nor sizes are given");
  }
  return resize_to(c, attributes, target);
}

// --- blocks

// x / block as an entry of a shape.
ValueId divided(NodeContext& c, ValueId x, int axis, int64_t block) {
  return c.emit.div(dims_product(c.emit, x, axis, axis + 1), c.emit.ints({&block, 1}));
}

ValueId reshape_parts(NodeContext& c, ValueId x, std::vector<ValueId> parts) {
  return c.emit.reshape(x, concat_values(c.emit, std::move(parts)));
}

Result<int64_t> block_of(NodeContext& c) {
  const int64_t block = c.integer("blocksize", 0);
  if (c.rank() != 4) return invalid_model("expected an input [N,C,H,W], found rank ", c.rank());
  if (block < 1 || block > 1 << 20) return invalid_model("blocksize: found ", block);
  return block;
}

// NHWC: [N,H,W,b,b,C'] (DCR) or [N,H,W,C',b,b] (CRD) -> [N,H,b,W,b,C'].
Status depth_to_space(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const int64_t block, block_of(c));
  const std::string mode = c.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return invalid_model("mode: expected DCR or CRD, found ", mode);
  const int64_t channels = c.extent(0, 1);
  if (channels > 0 && channels % (block * block) != 0)
    return invalid_model(channels, " channels do not divide by ", block * block);
  const ValueId x = to_channels_last(c.emit, c.input(0));
  const ValueId batch = dims_product(c.emit, x, 0, 1), b = c.emit.ints({&block, 1});
  const ValueId height = dims_product(c.emit, x, 1, 2), width = dims_product(c.emit, x, 2, 3);
  const ValueId inner = divided(c, x, 3, block * block);
  const bool dcr = mode == "DCR";
  ValueId y = reshape_parts(c, x, {batch, height, width, dcr ? b : inner, b, dcr ? inner : b});
  using Axes = std::vector<int64_t>;
  y = c.emit.transpose(y, dcr ? Axes{0, 1, 3, 2, 4, 5} : Axes{0, 1, 4, 2, 5, 3});
  y = reshape_parts(c, y, {batch, c.emit.mul(height, b), c.emit.mul(width, b), inner});
  return c.result(to_channels_first(c.emit, y));
}

// NHWC: [N,H/b,b,W/b,b,C] -> [N,H/b,W/b,b,b,C] (DCR) or [N,H/b,W/b,C,b,b] (CRD).
Status space_to_depth(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const int64_t block, block_of(c));
  const std::string mode = c.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return invalid_model("mode: expected DCR or CRD, found ", mode);
  const ValueId x = to_channels_last(c.emit, c.input(0));
  const ValueId channels = dims_product(c.emit, x, 3, 4);
  const ValueId batch = dims_product(c.emit, x, 0, 1);
  const ValueId height = divided(c, x, 1, block);
  const ValueId width = divided(c, x, 2, block);
  const ValueId b = c.emit.ints({&block, 1});
  ValueId y = reshape_parts(c, x, {batch, height, b, width, b, channels});
  using Axes = std::vector<int64_t>;
  y = c.emit.transpose(y, mode == "DCR" ? Axes{0, 1, 3, 2, 4, 5} : Axes{0, 1, 3, 5, 2, 4});
  const int64_t block_area = block * block;
  y = reshape_parts(c, y, {batch, height, width, c.emit.mul(channels, c.emit.ints({&block_area, 1}))});
  return c.result(to_channels_first(c.emit, y));
}

constexpr ImportRow kResizeRows[] = {
    {"", "Upsample", 1, 9, upsample},
    {"", "Resize", 10, 10, resize_10},
    {"", "Resize", 11, kNewestOpset, resize_11},
    {"", "DepthToSpace", 1, kNewestOpset, depth_to_space},
    {"", "SpaceToDepth", 1, kNewestOpset, space_to_depth},
};

}  // namespace

std::span<const ImportRow> rows_resize() {
  return kResizeRows;
}

}  // namespace librt::onnx
